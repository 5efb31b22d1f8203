// nodewise-pass: counts memory accesses of the optimised program, exactly. The last pass of clang's
// own pipeline, at any level of optimisation.
#include "instrument.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include <cstdlib>

using namespace llvm;

namespace nodewise {
namespace {

Scheme scheme() {
  const char *Wanted = std::getenv("NODEWISE_SCHEME");
  return Wanted && StringRef(Wanted) == "single" ? Scheme::Single : Scheme::Auto;
}

// Resolvers of indirect functions run before the runtime is relocated.
bool isResolver(const Function &F) {
  for (const GlobalIFunc &I : F.getParent()->ifuncs())
    if (I.getResolverFunction() == &F)
      return true;
  return false;
}

bool instrumentable(const Function &F) {
  return !F.isDeclaration() && !F.hasAvailableExternallyLinkage() && !F.hasFnAttribute(Attribute::Naked) &&
         !F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) && !F.isPresplitCoroutine() && !isResolver(F);
}

// For coverage: the distance from an entry of section nw_functions to the function.
void mark(Function &F) {
  Module &M = *F.getParent();
  Type *I64 = Type::getInt64Ty(F.getContext());
  auto *Entry = new GlobalVariable(M, I64, true, GlobalValue::PrivateLinkage, nullptr, "nw.function");
  Entry->setInitializer(
      ConstantExpr::getSub(ConstantExpr::getPtrToInt(&F, I64), ConstantExpr::getPtrToInt(Entry, I64)));
  Entry->setSection("nw_functions");
  Entry->setAlignment(Align(8));
  Entry->setComdat(F.getComdat());
  // Discarded by the linker together with the function.
  Entry->setMetadata(LLVMContext::MD_associated,
                     MDNode::get(F.getContext(), ValueAsMetadata::get(&F)));
  appendToCompilerUsed(M, Entry);
}

class InstrumentPass : public PassInfoMixin<InstrumentPass> {
public:
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &AM) {
    if (!instrumentable(F))
      return PreservedAnalyses::all();
    Accesses A = collect(F, AM.getResult<TargetLibraryAnalysis>(F));
    if (!A.empty()) {
      auto &SE = AM.getResult<ScalarEvolutionAnalysis>(F);
      auto &LI = AM.getResult<LoopAnalysis>(F);
      auto &DT = AM.getResult<DominatorTreeAnalysis>(F);
      // Values held over a second return of setjmp are not to be trusted.
      Scheme S = F.callsFunctionThatReturnsTwice() ? Scheme::Single : scheme();
      emit(F, plan(A.Plain, S, SE, LI, DT), A, S, SE, LI, DT);
    }
    if (isOutlined(F))
      emitRegion(F);
    F.removeFnAttr(Attribute::Memory);
    F.removeFnAttr(Attribute::Speculatable);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Functions are listed last: entries refer to them, and function passes may not add globals freely.
class MarkPass : public PassInfoMixin<MarkPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    SmallVector<Function *, 0> Functions;
    for (Function &F : M)
      if (instrumentable(F))
        Functions.push_back(&F);
    for (Function *F : Functions)
      mark(*F);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

void add(ModulePassManager &Passes, OptimizationLevel) {
  FunctionPassManager PerFunction;
  PerFunction.addPass(LoopSimplifyPass());
  PerFunction.addPass(InstrumentPass());
  Passes.addPass(createModuleToFunctionPassAdaptor(std::move(PerFunction)));
  Passes.addPass(MarkPass());
}

} // namespace
} // namespace nodewise

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "nodewise", "1",
          [](PassBuilder &Builder) { Builder.registerOptimizerLastEPCallback(nodewise::add); }};
}
