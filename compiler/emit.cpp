// Emits the code that counts: calls at loop entries and exits, and inlined lookups in blocks. The inlined fast path
// does the same as nw_find of runtime/counters.h and add of runtime/range.c.
#include "instrument.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace nodewise {
namespace {

// layout.h
constexpr unsigned PageShift = 12, PageBytes = 1 << PageShift, LineShift = 6;
constexpr unsigned WindowSlots = 1024, SlotShift = 5;
constexpr unsigned SlotCounter = 8, SlotBitmap = 16, CounterReads = 8, CounterWrites = 16;
// runtime.h
constexpr unsigned ThreadRegion = 8;

// An IRBuilder that attaches a source line to what it inserts.
class Builder : public IRBuilder<> {
public:
  Builder(Instruction *At, const DebugLoc &Where) : IRBuilder<>(At) { SetCurrentDebugLocation(Where); }
};

class Emitter {
public:
  Emitter(Function &F, StringRef Prefix) : F(F), M(*F.getParent()), C(F.getContext()), Prefix(Prefix) {}

  // Computes the values of all groups. This comes first, since expansion needs the control flow of the plan.
  void expand(const Plan &P, ScalarEvolution &SE) {
    SCEVExpander Expander(SE, M.getDataLayout(), "nw");
    for (const LoopGroup &G : P.Loops) {
      auto Expand = [&](const SCEV *S) { return Expander.expandCodeFor(S, I64, G.At); };
      Value *Base = Expander.expandCodeFor(G.Base, nullptr, G.At);
      IRBuilder<> B(G.At);
      if (G.Counted) {
        behind(G, integer(B, Base), Expand(G.Stride));
        continue;
      }
      Site S{G.At, where(G.Where), integer(B, Base), Expand(G.Stride), Expand(G.Count), &G.G};
      if (G.Across) {
        S.Across = Expand(G.Across);
        S.Repeats = B.getInt64(G.Repeats);
      }
      if (G.Outer.At)
        S.Unless = G.Outer.Count ? widen(G, Expander) : widenBehind(G, S, Expander);
      Sites.push_back(S);
    }
    for (const BlockGroup &G : P.Blocks) {
      IRBuilder<> B(G.At);
      Sites.push_back(
          {G.At, where(G.At->getDebugLoc()), address(B, G.Pointer, G.Offset), B.getInt64(0), B.getInt64(1), &G.G});
    }
  }

  void calls(ArrayRef<Access> Plain) {
    for (const Access &A : Plain) {
      Builder B(A.At, where(A.At->getDebugLoc()));
      Group Alone{{{0, A.Size, A.Read, A.Write}}, false};
      range(B, address(B, A.Pointer, A.Offset), B.getInt64(0), B.getInt64(1), Alone);
    }
  }

  // Looks up the thread once, in a block outside of loops that dominates all lookups. To be called before any block is
  // split.
  void thread(DominatorTree &DT, LoopInfo &LI) {
    if (Sites.empty())
      return;
    BasicBlock *At = Sites.front().At->getParent();
    for (const Site &S : Sites)
      At = DT.findNearestCommonDominator(At, S.At->getParent());
    while (LI.getLoopFor(At) || At->getFirstInsertionPt() == At->end())
      At = DT.getNode(At)->getIDom()->getBlock();
    auto First = At->isEntryBlock() ? At->getFirstNonPHIOrDbgOrAlloca() : At->getFirstInsertionPt();
    Builder B(&*First, where(DebugLoc()));
    Value *Here = callRuntime(B, "nw_thread_get", B.getPtrTy(), {});
    Window = B.CreateLoad(B.getPtrTy(), Here, "nw.window");
    Region = B.CreateLoad(I64, field(B, Here, ThreadRegion), "nw.region");
    Get = cast<CallInst>(Here);
  }

  // Inlines the lookup of the thread: a load and a test. The call remains for a thread that is not attached yet.
  void finishThread() {
    if (!Get)
      return;
    IRBuilder<> B(Get);
    Value *Self = B.CreateLoad(B.getPtrTy(), B.CreateThreadLocalAddress(self()), "nw.self");
    Value *Fresh = B.CreateIsNull(Self);
    BasicBlock *Before = Get->getParent();
    Instruction *Slow = SplitBlockAndInsertIfThen(Fresh, Get->getIterator(), false, rarely());
    BasicBlock *Join = Get->getParent();
    PHINode *Thread = PHINode::Create(Self->getType(), 2, "nw.thread", Join->begin());
    Get->replaceAllUsesWith(Thread);
    Get->moveBefore(Slow);
    Thread->addIncoming(Self, Before);
    Thread->addIncoming(Get, Slow->getParent());
  }

  void lookups() {
    for (Site &S : Sites) {
      if (S.Unless)
        S.At = SplitBlockAndInsertIfThen(IRBuilder<>(S.At).CreateNot(S.Unless), S.At->getIterator(), false);
      if (S.If)
        S.At = SplitBlockAndInsertIfThen(S.If, S.At->getIterator(), false);
      if (dense(S))
        lookup(S);
      else
        slowly(S, S.At);
    }
  }

  // Turns the variables that count executions into registers.
  void promote() {
    DominatorTree DT(F);
    PromoteMemToReg(Variables, DT);
  }

  void bulks(ArrayRef<Bulk> Bulks) {
    for (const Bulk &K : Bulks) {
      Builder B(K.At, where(K.At->getDebugLoc()));
      Value *Bytes = B.CreateZExtOrTrunc(K.Bytes, I64);
      Value *Words = B.CreateLShr(B.CreateAdd(Bytes, B.getInt64(WordBytes - 1)), Log2_32(WordBytes));
      Group Word{{{0, WordBytes, K.Read, K.Write}}, false};
      range(B, address(B, K.Pointer, 0), B.getInt64(WordBytes), Words, Word);
    }
  }

  void maskeds(ArrayRef<Masked> Maskeds) {
    for (const Masked &K : Maskeds)
      lanes(K);
  }

private:
  // A group and where it is counted: Count times, at Address, Address + Stride, ...
  struct Site {
    Instruction *At;
    DebugLoc Where;
    Value *Address, *Stride, *Count;
    const Group *G;
    Value *Across = nullptr, *Repeats = nullptr; // each time Repeats groups, Across apart
    Value *If = nullptr, *Unless = nullptr; // conditions of counting here
    bool Some = false; // Count is known not to be zero
  };

  // Counts a group at each exit of its loop.
  void behind(const LoopGroup &G, Value *Base, Value *Stride) {
    AllocaInst *Executed = executions(G.Counted, G.At);
    for (BasicBlock *Exit : G.Exits) {
      IRBuilder<> B(&*Exit->getFirstInsertionPt());
      Value *Count = B.CreateLoad(I64, Executed, "nw.executed");
      Site S{&*B.GetInsertPoint(), where(G.Where), Base, Stride, Count, &G.G};
      S.If = G.Always ? nullptr : B.CreateIsNotNull(Count);
      S.Some = true;
      Sites.push_back(S);
    }
  }

  // A variable that is zero at Entry; promote makes it a register.
  AllocaInst *variable(Instruction *Entry) {
    Variables.push_back(IRBuilder<>(&*F.getEntryBlock().begin()).CreateAlloca(I64));
    IRBuilder<>(Entry).CreateStore(ConstantInt::get(I64, 0), Variables.back());
    return Variables.back();
  }

  // How often Block has run since Entry.
  AllocaInst *executions(BasicBlock *Block, Instruction *Entry) {
    AllocaInst *&Variable = Executions[Block];
    if (!Variable) {
      Variable = variable(Entry);
      IRBuilder<> B(Block->getTerminator());
      B.CreateStore(B.CreateAdd(B.CreateLoad(I64, Variable), B.getInt64(1)), Variable);
    }
    return Variable;
  }

  // Counts a loop nest at once. This is done only if its pages take half of the window at most, since then the order
  // of counting does not change which lines count as newly touched. Returns the condition.
  Value *widen(const LoopGroup &G, SCEVExpander &Expander) {
    auto Expand = [&](const SCEV *S) { return Expander.expandCodeFor(S, I64, G.Outer.At); };
    Value *Base = Expander.expandCodeFor(G.Outer.Base, nullptr, G.Outer.At);
    Value *Stride = Expand(G.Outer.Stride), *Count = Expand(G.Outer.Count);
    Value *Across = Expand(G.Stride), *Repeats = Expand(G.Count);
    IRBuilder<> B(G.Outer.At);
    Value *Small = small(B, Stride, Count, Across, Repeats);
    Sites.push_back({G.Outer.At, where(G.Where), integer(B, Base), Stride, Count, &G.G, Across, Repeats, Small});
    return Small;
  }

  // Likewise, at the exits of the outer loop, whose number of iterations is not known before. The condition is
  // evaluated in each iteration, and holds for the first ones, as long as their pages are few enough.
  Value *widenBehind(const LoopGroup &G, const Site &Inner, SCEVExpander &Expander) {
    auto Expand = [&](const SCEV *S) { return Expander.expandCodeFor(S, I64, G.Outer.At); };
    Value *Base = Expander.expandCodeFor(G.Outer.Base, nullptr, G.Outer.At);
    Value *Stride = Expand(G.Outer.Stride), *Across = Expand(G.Stride), *Repeats = Expand(G.Count);
    IRBuilder<> Entry(G.Outer.At), B(Inner.At);
    Base = integer(Entry, Base);
    AllocaInst *Executed = variable(G.Outer.At);
    Value *Count = B.CreateLoad(I64, Executed);
    Value *Small = small(B, Stride, Count, Across, Repeats);
    B.CreateStore(B.CreateAdd(Count, B.CreateZExt(Small, I64)), Executed);
    for (BasicBlock *Exit : G.Exits) {
      IRBuilder<> X(&*Exit->getFirstInsertionPt());
      Count = X.CreateLoad(I64, Executed, "nw.executed");
      Sites.push_back(
          {&*X.GetInsertPoint(), where(G.Where), Base, Stride, Count, &G.G, Across, Repeats, X.CreateIsNotNull(Count)});
    }
    return Small;
  }

  Value *small(IRBuilder<> &B, Value *Stride, Value *Count, Value *Across, Value *Repeats) {
    auto Extent = [&](Value *By, Value *Times) {
      return B.CreateMul(B.CreateBinaryIntrinsic(Intrinsic::abs, By, B.getFalse()), Times);
    };
    Value *Bytes = B.CreateAdd(Extent(Stride, Count), Extent(Across, Repeats));
    return B.CreateICmpULT(Bytes, B.getInt64(WindowSlots / 2 * PageBytes), "nw.small");
  }

  Function &F;
  Module &M;
  LLVMContext &C;
  StringRef Prefix;
  Type *I64 = Type::getInt64Ty(C);
  Value *Window = nullptr, *Region = nullptr;
  CallInst *Get = nullptr;
  SmallVector<Site, 0> Sites;
  DenseMap<const BasicBlock *, AllocaInst *> Executions;
  SmallVector<AllocaInst *, 8> Variables;

  // Calls of the runtime get the line of the access, at which a first touch is reported.
  DebugLoc where(const DebugLoc &Access) const {
    if (Access || !F.getSubprogram())
      return Access;
    return DILocation::get(C, F.getSubprogram()->getLine(), 0, F.getSubprogram());
  }

  MDNode *rarely() { return MDBuilder(C).createBranchWeights(1, 1 << 20); }

  GlobalVariable *self() {
    if (GlobalVariable *G = M.getNamedGlobal("nw_self"))
      return G;
    return new GlobalVariable(M, PointerType::getUnqual(C), false, GlobalValue::ExternalLinkage, nullptr, "nw_self",
                              nullptr, GlobalValue::InitialExecTLSModel);
  }

  static Value *field(IRBuilder<> &B, Value *Pointer, uint64_t Offset) {
    return B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Pointer, Offset);
  }

  Value *integer(IRBuilder<> &B, Value *Pointer) { return B.CreatePtrToInt(Pointer, I64); }

  Value *address(IRBuilder<> &B, Value *Pointer, int64_t Offset) {
    return B.CreateAdd(integer(B, Pointer), B.getInt64(Offset));
  }

  // nw_group
  GlobalVariable *constant(const Group &G) {
    Type *I32 = Type::getInt32Ty(C), *I16 = Type::getInt16Ty(C), *I8 = Type::getInt8Ty(C);
    auto *AccessTy = StructType::get(I32, I16, I8, I8);
    SmallVector<Constant *, 8> Entries;
    for (const Member &A : G.Members)
      Entries.push_back(ConstantStruct::get(AccessTy, {ConstantInt::get(I32, A.Offset), ConstantInt::get(I16, A.Size),
                                                       ConstantInt::get(I8, A.Reads), ConstantInt::get(I8, A.Writes)}));
    auto Word = [&](uint64_t V) { return ConstantInt::get(I32, V); };
    Constant *Table = ConstantArray::get(ArrayType::get(AccessTy, Entries.size()), Entries);
    Constant *Whole = ConstantStruct::getAnon(
        {Word(Entries.size()), Word(G.span()), Word(G.reads()), Word(G.writes()), Word(G.last()), Word(0), Table});
    auto *Global = new GlobalVariable(M, Whole->getType(), true, GlobalValue::PrivateLinkage, Whole, "nw.group");
    Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    Global->setAlignment(Align(8));
    return Global;
  }

  void range(IRBuilder<> &B, Value *Address, Value *Stride, Value *Count, const Group &G) {
    callRange(B, Address, Stride, Count, constant(G));
  }

  void callRange(IRBuilder<> &B, Value *Address, Value *Stride, Value *Count, GlobalVariable *G) {
    callRuntime(B, (Prefix + "range").str(), B.getVoidTy(), {Address, Stride, Count, G});
  }

  // Splits the block at B's insertion point. Returns where the unlikely case is to be inserted; B continues after it.
  Instruction *unlikely(IRBuilder<> &B, Value *Condition) {
    return SplitBlockAndInsertIfThen(Condition, B.GetInsertPoint(), false, rarely());
  }

  void slowly(const Site &S, Instruction *At) {
    Builder B(At, S.Where);
    if (!S.Across)
      return range(B, S.Address, S.Stride, S.Count, *S.G);
    callRuntime(B, "nw_grid", B.getVoidTy(), {S.Address, S.Stride, S.Count, S.Across, S.Repeats, constant(*S.G)});
  }

  static bool once(const Site &S) { return match(S.Count, PatternMatch::m_One()); }

  // Whether no cache line is skipped between the first and the last repetition.
  static bool dense(const Site &S) {
    auto *Stride = dyn_cast<ConstantInt>(S.Stride);
    return Stride && !S.Across && Stride->getValue().abs().ult(S.G->sparse());
  }

  // Inlines one lookup for all repetitions, which is used if all accesses begin on one page.
  void lookup(const Site &S) {
    Builder B(S.At, S.Where);
    int64_t Stride = cast<ConstantInt>(S.Stride)->getSExtValue();
    Value *Advance = B.CreateMul(B.CreateSub(S.Count, B.getInt64(1)), B.getInt64(Stride));
    Value *Low = Stride < 0 ? B.CreateAdd(S.Address, Advance) : S.Address;
    Value *Extent = Stride < 0 ? B.CreateNeg(Advance) : Advance;
    Value *Offset = B.CreateAnd(Low, B.getInt64(PageBytes - 1));
    if (Value *Crosses = crosses(B, S, Offset, Extent)) {
      Instruction *Slow, *Fast;
      SplitBlockAndInsertIfThenElse(Crosses, S.At, &Slow, &Fast, rarely());
      slowly(S, Slow);
      B.SetInsertPoint(Fast);
    }
    Value *Slot = found(B, Low);
    Value *Lines = lines(B, Low, B.CreateAdd(Offset, Extent), once(S) && S.G->OneLine, S.G->span());
    count(B, Slot, S, Lines);
  }

  // The condition under which inlined counting would be wrong; null: never.
  Value *crosses(IRBuilder<> &B, const Site &S, Value *Offset, Value *Extent) {
    if ((once(S) || (S.Some && match(S.Stride, PatternMatch::m_Zero()))) && S.G->last() == 0)
      return nullptr;
    Value *Last = B.CreateAdd(Extent, B.getInt64(S.G->last()));
    Value *Leaves = B.CreateICmpUGT(B.CreateAdd(Offset, Last), B.getInt64(PageBytes - 1));
    return S.Some || isa<ConstantInt>(S.Count) ? Leaves : B.CreateOr(Leaves, B.CreateIsNull(S.Count));
  }

  // The slot of the address's page in the window, which is filled if necessary.
  Value *found(IRBuilder<> &B, Value *Address) {
    Value *Key = B.CreateOr(B.CreateLShr(Address, PageShift), Region);
    Value *Folded = B.CreateXor(Address, B.CreateLShr(Address, Log2_32(WindowSlots)));
    Value *At = B.CreateAnd(B.CreateLShr(Folded, PageShift - SlotShift), B.getInt64((WindowSlots - 1) << SlotShift));
    Value *Slot = B.CreateInBoundsGEP(B.getInt8Ty(), Window, At, "nw.slot");
    Value *Other = B.CreateICmpNE(B.CreateLoad(I64, Slot), Key);
    Instruction *Here = &*B.GetInsertPoint();
    BasicBlock *Hit = Here->getParent();
    Instruction *Slow = unlikely(B, Other);
    Builder S(Slow, where(B.getCurrentDebugLocation()));
    Value *Filled = callRuntime(S, "nw_miss", S.getPtrTy(), {Key});
    B.SetInsertPoint(Here);
    PHINode *Either = PHINode::Create(Slot->getType(), 2, "nw.slot", Here->getParent()->begin());
    Either->addIncoming(Slot, Hit);
    Either->addIncoming(Filled, Slow->getParent());
    return Either;
  }

  void bump(IRBuilder<> &B, Value *Field, Value *Count, unsigned By) {
    if (By)
      B.CreateStore(B.CreateAdd(B.CreateLoad(I64, Field), B.CreateMul(Count, B.getInt64(By))), Field);
  }

  void count(IRBuilder<> &B, Value *Slot, const Site &S, Value *Lines) {
    Value *Counter = B.CreateLoad(B.getPtrTy(), field(B, Slot, SlotCounter), "nw.counter");
    bump(B, field(B, Counter, CounterReads), S.Count, S.G->reads());
    bump(B, field(B, Counter, CounterWrites), S.Count, S.G->writes());
    Value *Bitmap = field(B, Slot, SlotBitmap);
    B.CreateStore(B.CreateOr(B.CreateLoad(I64, Bitmap), Lines), Bitmap);
  }

  // Bits of the lines from the first byte at Low to the last one of `Span` bytes at page offset End,
  // as far as they are on the page.
  Value *lines(IRBuilder<> &B, Value *Low, Value *End, bool OneLine, unsigned Span) {
    Value *First = B.CreateAnd(B.CreateLShr(Low, LineShift), B.getInt64(63));
    if (OneLine)
      return B.CreateShl(B.getInt64(1), First);
    Value *LastByte =
        B.CreateBinaryIntrinsic(Intrinsic::umin, B.CreateAdd(End, B.getInt64(Span - 1)), B.getInt64(PageBytes - 1));
    return B.CreateSub(B.CreateShl(B.getInt64(2), B.CreateLShr(LastByte, LineShift)),
                       B.CreateShl(B.getInt64(1), First));
  }

  // Makes one call, with the address of the first active lane, or with those of all lanes (gather, scatter).
  void lanes(const Masked &K) {
    Builder B(K.At, where(K.At->getDebugLoc()));
    auto *MaskTy = cast<FixedVectorType>(K.Mask->getType());
    unsigned Lanes = MaskTy->getNumElements();
    if (Lanes > 64)
      return;
    Value *Active = B.CreateZExt(B.CreateBitCast(K.Mask, B.getIntNTy(Lanes)), I64);
    GlobalVariable *G = constant({{{0, K.LaneBytes, K.Read, K.Write}}, false});
    if (!K.Pointer->getType()->isVectorTy()) {
      Value *Skipped = B.CreateBinaryIntrinsic(Intrinsic::cttz, Active, B.getFalse());
      Value *First = B.CreateAdd(integer(B, K.Pointer), B.CreateMul(Skipped, B.getInt64(K.LaneBytes)));
      Value *Any = B.CreateZExt(B.CreateIsNotNull(Active), I64);
      callRange(B, First, B.getInt64(0), Any, G);
      return;
    }
    auto *AddressesTy = FixedVectorType::get(I64, Lanes);
    IRBuilder<> Entry(&*F.getEntryBlock().getFirstInsertionPt());
    AllocaInst *Buffer = Entry.CreateAlloca(AddressesTy);
    B.CreateStore(B.CreatePtrToInt(K.Pointer, AddressesTy), Buffer);
    callRuntime(B, (Prefix + "lanes").str(), B.getVoidTy(), {Buffer, Active, B.getInt32(Lanes), G});
  }
};

} // namespace

CallInst *callRuntime(IRBuilder<> &B, StringRef Name, Type *Result, ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 4> Types;
  for (Value *V : Arguments)
    Types.push_back(V->getType());
  Module &M = *B.GetInsertBlock()->getModule();
  FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(Result, Types, false));
  auto *Function = cast<llvm::Function>(Callee.getCallee());
  Function->setCallingConv(CallingConv::PreserveMost);
  Function->setDoesNotThrow();
  Function->addFnAttr(Attribute::NonLazyBind);
  CallInst *Call = B.CreateCall(Callee, Arguments);
  Call->setCallingConv(CallingConv::PreserveMost);
  Call->setDoesNotThrow();
  return Call;
}

void emit(Function &F, const Plan &P, const Accesses &A, ScalarEvolution &SE, LoopInfo &LI, DominatorTree &DT) {
  Emitter E(F, "nw_");
  E.expand(P, SE);
  E.thread(DT, LI);
  E.bulks(A.Bulks);
  E.maskeds(A.Maskeds);
  E.lookups();
  E.finishThread();
  E.promote();
}

void emitSingly(Function &F, const Accesses &A, StringRef Prefix) {
  Emitter E(F, Prefix);
  E.calls(A.Plain);
  E.bulks(A.Bulks);
  E.maskeds(A.Maskeds);
}

} // namespace nodewise
