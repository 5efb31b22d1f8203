// Decides where accesses are counted: at the entry of their loop or at its exits where that is exact, else in their
// block; in each case together with their neighbours in memory.
#include "instrument.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace nodewise {

unsigned Group::span() const {
  int64_t End = 0;
  for (const Member &M : Members)
    End = std::max(End, M.Offset + M.Size);
  return End;
}

unsigned Group::reads() const {
  unsigned N = 0;
  for (const Member &M : Members)
    N += M.Reads;
  return N;
}

unsigned Group::writes() const {
  unsigned N = 0;
  for (const Member &M : Members)
    N += M.Writes;
  return N;
}

namespace {

constexpr int64_t LineBytes = 64;
constexpr int64_t MaxSpan = 1024;     // wider groups cross pages too often
constexpr unsigned MaxMembers = 64;   // of a group
constexpr unsigned MaxFamilies = 64;  // families of a block or loop that an access is compared with
constexpr unsigned FewGroups = 3;     // fewer groups are not worth merging
constexpr unsigned FewIterations = 2; // up to this many iterations are not worth a call per loop
constexpr unsigned MostExits = 2;     // exits of a loop that is counted there: code is inserted at each

// Accesses whose distances are constants.
struct Family {
  const SCEV *First;
  SmallVector<std::pair<int64_t, const Access *>, 4> Kin; // distance from First
};

// A loop of which blocks that dominate the latch run a number of times that is known at its entry: it has one exiting
// block and a computable count, and every instruction passes control to the next one.
struct LoopFacts {
  BasicBlock *Exiting = nullptr; // null: no summaries
  const SCEV *Backedges = nullptr;
};

// A loop whose accesses can be counted at its exits, by how often a block has run: control leaves only by the exits,
// and is certain to do so, since the loop does not wait for other threads.
struct WaysOut {
  SmallVector<BasicBlock *, 4> Exiting;
  SmallVector<BasicBlock *, 2> Exits; // empty: the loop does not meet these conditions
};

// Makes divisions in an address safe to compute at loop entry: the program does not make the access if the divisor is
// zero.
struct SafeDivision : SCEVRewriteVisitor<SafeDivision> {
  using SCEVRewriteVisitor::SCEVRewriteVisitor;
  const SCEV *visitUDivExpr(const SCEVUDivExpr *E) {
    const SCEV *Divisor = visit(E->getRHS());
    return SE.getUDivExpr(visit(E->getLHS()), SE.getUMaxExpr(Divisor, SE.getOne(Divisor->getType())));
  }
};

class Planner {
public:
  Planner(ScalarEvolution &SE, LoopInfo &LI, DominatorTree &DT)
      : SE(SE), LI(LI), DT(DT), Expander(SE, SE.getDataLayout(), "nw") {}

  Plan run(ArrayRef<Access> Plain) {
    for (const Access &A : Plain)
      if (!summarise(A) && !behind(A))
        inBlock(A);
    for (auto &Loop : LoopFamilies) {
      size_t From = Result.Loops.size();
      for (Family &F : Loop.second)
        split(F, [&](Group G, const Access &, const Access &Lowest, int64_t) {
          loopGroup(Loop.first, std::move(G), Lowest);
        });
      merge(From);
    }
    for (auto &Block : BlockFamilies)
      for (Family &F : Block.second)
        split(F, [&](Group G, const Access &First, const Access &, int64_t Back) {
          Result.Blocks.push_back({std::move(G), First.At, First.Pointer, First.Offset + Back});
        });
    return std::move(Result);
  }

private:
  ScalarEvolution &SE;
  LoopInfo &LI;
  DominatorTree &DT;
  SCEVExpander Expander;
  Plan Result;
  DenseMap<const Loop *, LoopFacts> Facts;
  DenseMap<const Loop *, WaysOut> Out;

  struct LoopKey {
    const Loop *L;
    const SCEV *Stride;
    bool BeforeExit;               // the access runs once more than the back edge is taken
    BasicBlock *Counted = nullptr; // a block that runs as often as the access; null: known at loop entry
    bool operator==(const LoopKey &O) const {
      return L == O.L && Stride == O.Stride && BeforeExit == O.BeforeExit && Counted == O.Counted;
    }
  };
  std::vector<std::pair<LoopKey, std::vector<Family>>> LoopFamilies;
  MapVector<std::pair<const BasicBlock *, unsigned>, std::vector<Family>> BlockFamilies;
  DenseMap<const BasicBlock *, DenseMap<const Instruction *, unsigned>> Segments;

  const LoopFacts &facts(const Loop *L) {
    auto [It, New] = Facts.try_emplace(L);
    if (New)
      It->second = examine(*L);
    return It->second;
  }

  LoopFacts examine(const Loop &L) {
    LoopFacts None;
    BasicBlock *Exiting = L.getExitingBlock();
    if (!L.getLoopPreheader() || !L.getLoopLatch() || !Exiting || !DT.dominates(Exiting, L.getLoopLatch()))
      return None;
    if (LI.getLoopFor(Exiting) != &L)
      return None;
    for (const BasicBlock *B : L.blocks())
      if (!isGuaranteedToTransferExecutionToSuccessor(B))
        return None;
    const SCEV *Backedges = SE.getExitCount(&L, Exiting);
    Instruction *At = L.getLoopPreheader()->getTerminator();
    if (isa<SCEVCouldNotCompute>(Backedges) || !Expander.isSafeToExpandAt(Backedges, At))
      return None;
    if (SE.getTypeSizeInBits(Backedges->getType()) > 64)
      return None;
    if (unsigned N = SE.getSmallConstantTripCount(&L); N && N <= FewIterations)
      return None;
    return {Exiting, Backedges};
  }

  const SCEV *address(const Access &A) {
    const SCEV *S = SafeDivision(SE).visit(SE.getSCEV(A.Pointer));
    return A.Offset ? SE.getAddExpr(S, SE.getConstant(SE.getEffectiveSCEVType(S->getType()), A.Offset)) : S;
  }

  // S as Start + Stride * iteration of L.
  bool affine(const SCEV *S, const Loop *L, const SCEV *&Start, const SCEV *&Stride) {
    Type *I64 = Type::getInt64Ty(SE.getContext());
    if (SE.isLoopInvariant(S, L)) {
      Start = S;
      Stride = SE.getZero(I64);
      return true;
    }
    auto *Recurrence = dyn_cast<SCEVAddRecExpr>(S);
    if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
      return false;
    Start = Recurrence->getStart();
    Stride = SE.getTruncateOrSignExtend(Recurrence->getStepRecurrence(SE), I64);
    return true;
  }

  // Counts the access at the entry of its innermost loop, if that is exact.
  bool summarise(const Access &A) {
    BasicBlock *Block = A.At->getParent();
    const Loop *L = LI.getLoopFor(Block);
    if (!L || !DT.dominates(Block, L->getLoopLatch() ? L->getLoopLatch() : L->getHeader()))
      return false;
    const LoopFacts &Of = facts(L);
    if (!Of.Exiting || !SE.isSCEVable(A.Pointer->getType()))
      return false;
    const SCEV *S = address(A), *Stride;
    if (!strided(S, L, Stride))
      return false;
    join(familiesOf({L, Stride, DT.dominates(Block, Of.Exiting)}), S, A);
    return true;
  }

  // Whether S is affine in L, with a start and a stride that can be computed at L's entry.
  bool strided(const SCEV *S, const Loop *L, const SCEV *&Stride) {
    const SCEV *Start;
    if (!affine(S, L, Start, Stride))
      return false;
    Instruction *At = L->getLoopPreheader()->getTerminator();
    return Expander.isSafeToExpandAt(Start, At) && Expander.isSafeToExpandAt(Stride, At);
  }

  const WaysOut &out(const Loop *L) {
    auto [It, New] = Out.try_emplace(L);
    if (New)
      It->second = waysOut(*L);
    return It->second;
  }

  WaysOut waysOut(const Loop &L) {
    WaysOut Of;
    L.getExitingBlocks(Of.Exiting);
    L.getUniqueExitBlocks(Of.Exits);
    auto Waits = [](const Instruction &I) { return I.isAtomic() || I.isVolatile(); };
    auto Closed = [&](const BasicBlock *B) {
      return !isGuaranteedToTransferExecutionToSuccessor(B) || any_of(*B, Waits);
    };
    auto Full = [](BasicBlock *B) { return B->getFirstInsertionPt() == B->end(); };
    unsigned Trips = SE.getSmallConstantTripCount(&L);
    if (!L.isLoopSimplifyForm() || Of.Exits.size() > MostExits || any_of(L.blocks(), Closed) ||
        any_of(Of.Exits, Full) || (Trips && Trips <= FewIterations))
      return {};
    return Of;
  }

  // Counts the access at the exits of its innermost loop, if its block's executions can be counted.
  bool behind(const Access &A) {
    BasicBlock *Block = A.At->getParent();
    const Loop *L = LI.getLoopFor(Block);
    if (!L || !L->isInnermost() || !SE.isSCEVable(A.Pointer->getType()))
      return false;
    const WaysOut &Of = out(L);
    const SCEV *S = address(A), *Stride;
    if (Of.Exits.empty() || !strided(S, L, Stride))
      return false;
    bool Always = DT.dominates(Block, L->getLoopLatch());
    if (!Always && !Stride->isZero())
      return false;
    auto Before = [&](BasicBlock *E) { return DT.dominates(Block, E); };
    if (Always && all_of(Of.Exiting, Before))
      Block = L->getHeader();
    else if (Always && none_of(Of.Exiting, Before))
      Block = L->getLoopLatch();
    join(familiesOf({L, Stride, false, Block}), S, A);
    return true;
  }

  std::vector<Family> &familiesOf(LoopKey Key) {
    for (auto &[Existing, Families] : LoopFamilies)
      if (Existing == Key)
        return Families;
    return LoopFamilies.emplace_back(Key, std::vector<Family>()).second;
  }

  void inBlock(const Access &A) {
    auto &Families = BlockFamilies[{A.At->getParent(), segment(*A.At)}];
    if (SE.isSCEVable(A.Pointer->getType()))
      join(Families, address(A), A);
    else
      Families.push_back({nullptr, {{0, &A}}});
  }

  // The number of the segment of its block that an instruction is in. Within a segment each instruction passes control
  // to the next one.
  unsigned segment(const Instruction &I) {
    auto [It, New] = Segments.try_emplace(I.getParent());
    if (New) {
      unsigned N = 0;
      for (const Instruction &J : *I.getParent()) {
        It->second[&J] = N;
        N += !isGuaranteedToTransferExecutionToSuccessor(&J);
      }
    }
    return It->second[&I];
  }

  void join(std::vector<Family> &Families, const SCEV *S, const Access &A) {
    size_t Oldest = Families.size() > MaxFamilies ? Families.size() - MaxFamilies : 0;
    for (size_t I = Families.size(); I-- > Oldest;) {
      Family &F = Families[I];
      if (!F.First || SE.getPointerBase(F.First) != SE.getPointerBase(S))
        continue;
      auto *Distance = dyn_cast<SCEVConstant>(SE.getMinusSCEV(S, F.First));
      if (Distance && Distance->getAPInt().getSignificantBits() <= 32) {
        F.Kin.push_back({Distance->getAPInt().getSExtValue(), &A});
        return;
      }
    }
    Families.push_back({S, {{0, &A}}});
  }

  // Splits a family into dense groups. Calls Done with the group, its first access in the program, its lowest in
  // memory, and the distance from the first to the lowest.
  template <typename Callback> void split(Family &F, Callback Done) {
    SmallVector<unsigned, 8> Order(F.Kin.size());
    for (unsigned I = 0; I < Order.size(); I++)
      Order[I] = I;
    sort(Order, [&](unsigned A, unsigned B) { return std::pair(F.Kin[A].first, A) < std::pair(F.Kin[B].first, B); });
    for (size_t From = 0; From < Order.size();) {
      int64_t Low = F.Kin[Order[From]].first, End = Low;
      unsigned First = Order[From];
      size_t To = From;
      Group G;
      for (; To < Order.size() && G.Members.size() < MaxMembers; To++) {
        auto [Distance, A] = F.Kin[Order[To]];
        if (To > From && (Distance >= End + LineBytes || Distance - Low + A->Size > MaxSpan))
          break;
        add(G, Distance - Low, *A);
        End = std::max(End, Distance + A->Size);
        First = std::min(First, Order[To]);
      }
      const Access &Lowest = *F.Kin[Order[From]].second;
      G.OneLine = G.Members.size() == 1 && Lowest.Size <= LineBytes && Lowest.Alignment.value() >= Lowest.Size;
      Done(std::move(G), *F.Kin[First].second, Lowest, Low - F.Kin[First].first);
      From = To;
    }
  }

  static void add(Group &G, int64_t Offset, const Access &A) {
    if (!G.Members.empty()) {
      Member &Last = G.Members.back();
      if (Last.Offset == Offset && Last.Size == A.Size && Last.Reads < 255 && Last.Writes < 255) {
        Last.Reads += A.Read;
        Last.Writes += A.Write;
        return;
      }
    }
    G.Members.push_back({Offset, A.Size, A.Read, A.Write});
  }

  // How often a block that dominates the latch runs.
  const SCEV *count(const LoopFacts &Of, bool BeforeExit) {
    Type *I64 = Type::getInt64Ty(SE.getContext());
    const SCEV *Count = SE.getTruncateOrZeroExtend(Of.Backedges, I64);
    return BeforeExit ? SE.getAddExpr(Count, SE.getOne(I64)) : Count;
  }

  void loopGroup(const LoopKey &Key, Group G, const Access &Lowest) {
    const SCEV *Count = Key.Counted ? nullptr : count(facts(Key.L), Key.BeforeExit);
    const SCEV *S = address(Lowest);
    if (!Key.Stride->isZero())
      S = cast<SCEVAddRecExpr>(S)->getStart();
    LoopGroup Whole{std::move(G), Key.L->getLoopPreheader()->getTerminator(), Lowest.At->getDebugLoc(), S, Key.Stride,
                    Count};
    if (Key.Counted) {
      Whole.Counted = Key.Counted;
      Whole.Always = Key.Counted == Key.L->getHeader();
      Whole.Exits = out(Key.L).Exits;
    } else {
      widen(Whole, *Key.L);
    }
    Result.Loops.push_back(std::move(Whole));
  }

  // Moves counting to the entry of the loop around L, or to its exits, if the group is counted in each iteration of
  // that loop, with the same count.
  void widen(LoopGroup &G, const Loop &L) {
    const Loop *Around = L.getParentLoop();
    const SCEV *Start, *Stride;
    if (!Around || !SE.isLoopInvariant(G.Stride, Around) || !SE.isLoopInvariant(G.Count, Around) ||
        !affine(G.Base, Around, Start, Stride))
      return;
    const LoopFacts &Of = facts(Around);
    BasicBlock *Entry = G.At->getParent();
    bool Known = Of.Exiting && DT.dominates(Entry, Around->getLoopLatch());
    if (!Known && (out(Around).Exits.empty() || !(Stride->isZero() || steady(Entry, *Around))))
      return;
    Instruction *At = Around->getLoopPreheader()->getTerminator();
    for (const SCEV *Needed : {Start, Stride, G.Stride, G.Count})
      if (!Expander.isSafeToExpandAt(Needed, At))
        return;
    G.Outer = {At, Start, Stride, Known ? count(Of, DT.dominates(Entry, Of.Exiting)) : nullptr};
    if (!Known)
      G.Exits = out(Around).Exits;
  }

  // Whether a block runs in each iteration of L or in none.
  bool steady(const BasicBlock *Block, const Loop &L) {
    if (DT.dominates(Block, L.getLoopLatch()))
      return true;
    const BasicBlock *Before = Block->getSinglePredecessor();
    auto *Branch = Before ? dyn_cast<BranchInst>(Before->getTerminator()) : nullptr;
    return Branch && Branch->isConditional() && L.isLoopInvariant(Branch->getCondition()) &&
           LI.getLoopFor(Before) == &L && DT.dominates(Before, L.getLoopLatch());
  }

  // Merges equal groups of one loop at equal distances, from index From on. They come from an inner loop that was
  // unrolled and whose stride is not a constant.
  void merge(size_t From) {
    auto &All = Result.Loops;
    size_t Kept = From;
    for (size_t I = From; I < All.size(); Kept++) {
      size_t Next = I + 1;
      const SCEV *Across = nullptr;
      for (; Next < All.size(); Next++) {
        const SCEV *Step = across(All[Next - 1], All[Next]);
        if (!Step || (Across && Step != Across))
          break;
        Across = Step;
      }
      LoopGroup Merged = std::move(All[I]);
      if (Next - I >= FewGroups) {
        Merged.Across = Across;
        Merged.Repeats = Next - I;
      } else {
        Next = I + 1;
      }
      All[Kept] = std::move(Merged);
      I = Next;
    }
    All.truncate(Kept);
  }

  // The distance of two groups that may be merged; null: they may not.
  const SCEV *across(const LoopGroup &A, const LoopGroup &B) {
    if (auto *Stride = dyn_cast<SCEVConstant>(A.Stride); Stride && Stride->getAPInt().abs().ult(A.G.sparse()))
      return nullptr; // counted by an inlined lookup
    if (A.Outer.At || B.Outer.At || A.Counted || B.Counted)
      return nullptr; // mostly counted for an outer loop or at exits
    if (A.G.Members != B.G.Members || SE.getPointerBase(A.Base) != SE.getPointerBase(B.Base))
      return nullptr;
    const SCEV *Step = SE.getMinusSCEV(B.Base, A.Base);
    if (isa<SCEVCouldNotCompute>(Step) || !Expander.isSafeToExpandAt(Step, A.At))
      return nullptr;
    return SE.getTruncateOrSignExtend(Step, Type::getInt64Ty(SE.getContext()));
  }
};

} // namespace

Plan plan(ArrayRef<Access> Plain, ScalarEvolution &SE, LoopInfo &LI, DominatorTree &DT) {
  return Planner(SE, LI, DT).run(Plain);
}

} // namespace nodewise
