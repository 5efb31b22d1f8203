// Outlined OpenMP functions are regions: a descriptor each, set on entry, undone on the way out.
#include "instrument.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nodewise {
namespace {

constexpr StringRef Marks[] = {".omp_outlined", ".omp_task_entry", "._omp_fn"};

size_t markAt(StringRef Name) {
  for (StringRef Mark : Marks)
    if (size_t At = Name.find(Mark); At != StringRef::npos)
      return At;
  return StringRef::npos;
}

Constant *text(Module &M, StringRef S) {
  Constant *Data = ConstantDataArray::getString(M.getContext(), S);
  auto *G = new GlobalVariable(M, Data->getType(), true, GlobalValue::PrivateLinkage, Data, "nw.text");
  G->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return G;
}

// nw_region
GlobalVariable *descriptor(Function &F) {
  Module &M = *F.getParent();
  StringRef Name = F.getName();
  const DISubprogram *Program = F.getSubprogram();
  StringRef Parent = Name.take_front(markAt(Name));
  Type *I32 = Type::getInt32Ty(M.getContext());
  Constant *Value =
      ConstantStruct::getAnon({text(M, Parent.empty() ? Name : Parent), text(M, Program ? Program->getFilename() : ""),
                               ConstantInt::get(I32, Program ? Program->getLine() : 0), ConstantInt::get(I32, 0)});
  auto *G = new GlobalVariable(M, Value->getType(), false, GlobalValue::PrivateLinkage, Value, "nw.region");
  G->setAlignment(Align(8));
  return G;
}

} // namespace

// With debug information clang wraps `f.omp_outlined_debug__`: the inner one is the region.
bool isOutlined(const Function &F) {
  return markAt(F.getName()) != StringRef::npos && !F.getParent()->getFunction((F.getName() + "_debug__").str());
}

void emitRegion(Function &F) {
  GlobalVariable *Region = descriptor(F);
  IRBuilder<> B(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  if (const DISubprogram *Program = F.getSubprogram())
    B.SetCurrentDebugLocation(DILocation::get(F.getContext(), Program->getLine(), 0, F.getSubprogram()));
  Value *Previous = callRuntime(B, "nw_region_enter", B.getInt64Ty(), {Region});
  for (BasicBlock &Block : F) {
    Instruction *End = Block.getTerminator();
    if (!isa<ReturnInst, ResumeInst>(End) || Block.getTerminatingMustTailCall())
      continue;
    B.SetInsertPoint(End);
    callRuntime(B, "nw_region_leave", B.getVoidTy(), {Region, Previous});
  }
}

} // namespace nodewise
