// nodewise-pass: counts the memory accesses of the optimised program exactly. It runs as the last pass of
// clang's own pipeline, at any level of optimisation.
#include "instrument.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
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
  return StringSwitch<Scheme>(Wanted ? Wanted : "")
      .Case("single", Scheme::Single)
      .Case("check", Scheme::Check)
      .Default(Scheme::Auto);
}

// Resolvers of indirect functions run before the runtime library is relocated, so they must not call it.
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

// Puts NW_FUNCTION_MARK of runtime.h before the function's first byte, from which coverage is determined. It needs
// no relocation, and the linker keeps or discards it with the function.
void mark(Function &F) {
  if (!F.hasPrefixData())
    F.setPrefixData(ConstantDataArray::getString(F.getContext(), "nodewise:counted", false));
}

// Marks the inserted instructions, so that samples of a running program show what counting costs. They get the line of
// the access that they count, and a column that no source has (NW_COUNTING_COLUMN of runtime.h).
class Inserted {
public:
  explicit Inserted(Function &F) : F(F) {
    for (const Instruction &I : instructions(F))
      Before.insert(&I);
  }
  void stamp() const {
    DISubprogram *Program = F.getSubprogram();
    if (!Program)
      return;
    for (Instruction &I : instructions(F)) {
      if (Before.contains(&I))
        continue;
      const DebugLoc &At = I.getDebugLoc();
      unsigned Line = At ? At.getLine() : Program->getLine();
      Metadata *Scope = At ? At.getScope() : Program;
      I.setDebugLoc(DILocation::get(F.getContext(), Line, CountingColumn, Scope, At ? At.getInlinedAt() : nullptr));
    }
  }

private:
  static constexpr unsigned CountingColumn = 65535;
  Function &F;
  SmallPtrSet<const Instruction *, 32> Before;
};

class InstrumentPass : public PassInfoMixin<InstrumentPass> {
public:
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &AM) {
    if (!instrumentable(F))
      return PreservedAnalyses::all();
    Target Code(F);
    Accesses A = collect(F, AM.getResult<TargetLibraryAnalysis>(F), Code);
    merge(F, A, Code, AM.getResult<ScalarEvolutionAnalysis>(F));
    SmallVector<Instruction *, 2> Taken = tickets(F);
    Inserted Counting(F);
    if (!A.empty())
      count(F, A, AM);
    if (isOutlined(F))
      emitRegion(F);
    emitTickets(F, Taken);
    Counting.stamp();
    mark(F);
    F.removeFnAttr(Attribute::Memory);
    F.removeFnAttr(Attribute::Speculatable);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  static void count(Function &F, const Accesses &A, FunctionAnalysisManager &AM) {
    Scheme S = scheme();
    // After a second return of setjmp, values that were kept since the first one may be wrong.
    if (S == Scheme::Single || F.callsFunctionThatReturnsTwice()) {
      emitSingly(F, A, "nw_");
      if (S == Scheme::Check)
        emitSingly(F, A, "nw_check_");
      return;
    }
    auto &SE = AM.getResult<ScalarEvolutionAnalysis>(F);
    auto &LI = AM.getResult<LoopAnalysis>(F);
    auto &DT = AM.getResult<DominatorTreeAnalysis>(F);
    Plan P = plan(A.Plain, SE, LI, DT);
    if (S == Scheme::Check)
      emitSingly(F, A, "nw_check_");
    emit(F, P, A, SE, LI, DT);
  }
};

// Has the module refer to the symbol by which the runtime says that it serves this code (NW_INTERFACE of layout.h):
// the loader refuses another runtime instead of letting the code corrupt its memory.
struct InterfacePass : PassInfoMixin<InterfacePass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    if (none_of(M, instrumentable))
      return PreservedAnalyses::all();
    constexpr const char *Name = "nodewise.interface";
    Type *Byte = Type::getInt8Ty(M.getContext());
    auto *Reference =
        new GlobalVariable(M, PointerType::getUnqual(M.getContext()), true, GlobalValue::LinkOnceODRLinkage,
                           M.getOrInsertGlobal("nodewise_interface_1", Byte), Name);
    Reference->setVisibility(GlobalValue::HiddenVisibility);
    Reference->setComdat(M.getOrInsertComdat(Name));
    appendToUsed(M, {Reference});
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

void add(ModulePassManager &Passes, OptimizationLevel) {
  Passes.addPass(InterfacePass());
  FunctionPassManager PerFunction;
  PerFunction.addPass(LoopSimplifyPass());
  PerFunction.addPass(InstrumentPass());
  Passes.addPass(createModuleToFunctionPassAdaptor(std::move(PerFunction)));
}

} // namespace
} // namespace nodewise

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "nodewise", "1",
          [](PassBuilder &Builder) { Builder.registerOptimizerLastEPCallback(nodewise::add); }};
}
