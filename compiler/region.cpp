// Outlined OpenMP functions are regions. Each has a descriptor, which becomes the thread's region on entry; on exit the
// previous region is restored.
#include "instrument.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
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

// How a region distributes work to its threads: the numbers of nodewise_profile::Schedule.
enum Schedule : unsigned {
  Unknown = 0,
  Static = 1,
  Dynamic = 2,
  Guided = 3,
  Auto = 4,
  Runtime = 5,
  Tasks = 6,
  Ordered = 7
};

// Of several schedules in a region, the one that is last here counts.
constexpr Schedule Rank[] = {Unknown, Static, Auto, Runtime, Guided, Dynamic, Ordered, Tasks};

// kmp.h, enum sched_type, without its modifiers and the offset for nomerge loops.
Schedule ofKmp(uint64_t Kind) {
  Kind &= (1u << 29) - 1;
  if (Kind >= 160)
    Kind -= 128;
  bool HasOrdered = Kind >= 64 && Kind < 80;
  if (HasOrdered)
    Kind -= 32;
  if (Kind == 33 || Kind == 34)
    return Static;
  if (HasOrdered)
    return Ordered;
  switch (Kind) {
  case 35:
    return Dynamic;
  case 36:
  case 46: // guided_simd
    return Guided;
  case 37:
  case 47: // runtime_simd
    return Runtime;
  case 38:
    return Auto;
  default:
    return Dynamic; // other schedules that give out work piece by piece
  }
}

Schedule scheduleOf(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee)
    return Unknown;
  StringRef Name = Callee->getName();
  if (Name.starts_with("__kmpc_omp_task") || Name.starts_with("__kmpc_taskloop"))
    return Name.starts_with("__kmpc_omp_taskwait") || Name.starts_with("__kmpc_omp_taskyield") ? Unknown : Tasks;
  if (Name.starts_with("__kmpc_for_static_init") || Name.starts_with("__kmpc_dist_for_static_init"))
    return Static;
  if (Name == "__kmpc_doacross_init")
    return Ordered;
  if (!Name.starts_with("__kmpc_dispatch_init") || Call.arg_size() < 3)
    return Unknown;
  const auto *Kind = dyn_cast<ConstantInt>(Call.getArgOperand(2));
  return Kind ? ofKmp(Kind->getZExtValue()) : Runtime;
}

Schedule scheduleOf(const Function &F) {
  if (F.getName().contains(".omp_task_entry"))
    return Tasks;
  Schedule Most = Unknown;
  for (const Instruction &I : instructions(F))
    if (const auto *Call = dyn_cast<CallBase>(&I)) {
      Schedule Found = scheduleOf(*Call);
      if (find(Rank, Found) > find(Rank, Most))
        Most = Found;
    }
  return Most;
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
                               ConstantInt::get(I32, Program ? Program->getLine() : 0), ConstantInt::get(I32, 0),
                               ConstantInt::get(I32, scheduleOf(F)), ConstantInt::get(I32, 0)});
  auto *G = new GlobalVariable(M, Value->getType(), false, GlobalValue::PrivateLinkage, Value, "nw.region");
  G->setAlignment(Align(8));
  return G;
}

} // namespace

// With debug information `f.omp_outlined` is only a wrapper around `f.omp_outlined_debug__`, which then is the region.
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
