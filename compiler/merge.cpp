// Merges accesses of a block for which the code generator makes one instruction, because nothing in between could
// observe the difference: adjacent copies and stores of constants (two loads and two stores of eight bytes become one
// each of sixteen), and repeated loads of the same bytes.
#include "instrument.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace nodewise {
namespace {

constexpr unsigned MostStores = 64, MostLoads = 64; // compared with each other

constexpr unsigned ZeroBytes = 4; // size of the elements that are assumed for vectors of zeros

// A store that may be merged: of a constant, or of a value that was loaded only for this store.
struct Stored {
  Access *To, *From; // null From: a constant
  Type *Element;
  bool Zero;
  unsigned Order; // index of the instruction in Stores
};

class Merger {
public:
  Merger(Accesses &A, const Target &Code, const DataLayout &DL, ScalarEvolution &SE)
      : A(A), Code(Code), DL(DL), SE(SE) {
    for (Access &X : A.Plain)
      Of[X.At].push_back(&X);
  }

  void visit(BasicBlock &B) {
    for (Instruction &I : B) {
      auto *Load = dyn_cast<LoadInst>(&I);
      auto *Store = dyn_cast<StoreInst>(&I);
      auto *Set = dyn_cast<MemSetInst>(&I);
      if (Load && Load->isSimple()) {
        if (!Stores.empty())
          flush();
        reuse(*Load);
        Loads.insert(Load);
      } else if (Store && Store->isSimple()) {
        Stores.push_back(Store);
        note(*Store);
      } else if (Set && !Set->isVolatile() && !Of[Set].empty()) {
        Stores.push_back(Set);
        note(*Set);
      } else if (I.mayReadOrWriteMemory() || I.mayHaveSideEffects()) {
        flush();
      }
    }
    flush();
  }

  void finish() {
    erase_if(A.Plain, [](const Access &X) { return X.Size == 0; });
  }

private:
  Accesses &A;
  const Target &Code;
  const DataLayout &DL;
  ScalarEvolution &SE;
  DenseMap<const Instruction *, SmallVector<Access *, 2>> Of;
  // A sequence of loads, then stores, without other accesses to memory in between.
  SmallPtrSet<const LoadInst *, 16> Loads;
  SmallVector<Access *, 16> Read;         // the accesses of these loads
  SmallPtrSet<const Access *, 16> Reused; // those that serve another load too, so are not only copied
  SmallVector<Instruction *, 16> Stores;
  SmallVector<Stored, 16> Candidates;

  // Drops accesses to bytes that were already loaded as the same type. Loop unrolling and vectorisation leave such
  // loads.
  void reuse(const LoadInst &Load) {
    if (!Code.optimises())
      return;
    for (Access *X : Of[&Load]) {
      auto Same = [&](const Access *Y) {
        return Y->Size == X->Size && Y->At->getType()->getScalarType() == Load.getType()->getScalarType() &&
               distance(*Y, *X) == 0;
      };
      if (auto *Known = find_if(Read, Same); Known != Read.end()) {
        Reused.insert(*Known);
        X->Size = 0;
      } else if (Read.size() < MostLoads) {
        Read.push_back(X);
      }
    }
  }

  void note(StoreInst &S) {
    Value *V = S.getValueOperand();
    Type *T = V->getType();
    auto *From = dyn_cast<LoadInst>(V);
    bool Copies = From && From->hasOneUse() && Loads.contains(From);
    bool Constant = isa<ConstantInt, ConstantFP, ConstantPointerNull>(V);
    if (isa<ConstantAggregateZero>(V) && T->isVectorTy() && Of[&S].size() == 1)
      return zeros(S);
    if (Candidates.size() >= MostStores || T->isVectorTy() || T->isAggregateType() || !(Copies || Constant))
      return;
    auto &To = Of[&S];
    SmallVector<Access *, 2> None(To.size(), nullptr), &Sources = Copies ? Of[From] : None;
    if (To.size() != Sources.size())
      return;
    for (auto [Written, Loaded] : zip(To, Sources)) {
      if (Loaded && (Reused.contains(Loaded) || Loaded->Size != Written->Size || Loaded->Offset != Written->Offset))
        return;
      bool Whole = Written->Size == DL.getTypeStoreSize(T) && !T->isPointerTy();
      Type *Element = Whole ? T : Type::getIntNTy(S.getContext(), Written->Size * 8);
      bool Zero = Constant && cast<llvm::Constant>(V)->isNullValue();
      Candidates.push_back({Written, Loaded, Element, Zero, unsigned(Stores.size() - 1)});
    }
  }

  void note(MemSetInst &S) {
    auto *Byte = dyn_cast<ConstantInt>(S.getValue());
    if (Byte && Byte->isZero())
      zeros(S);
  }

  void zeros(Instruction &S) {
    for (Access *To : Of[&S])
      if (Candidates.size() < MostStores && To->Size % ZeroBytes == 0)
        Candidates.push_back({To, nullptr, FixedVectorType::get(Type::getInt32Ty(S.getContext()), To->Size / ZeroBytes),
                              true, unsigned(Stores.size() - 1)});
  }

  std::optional<int64_t> distance(const Access &From, const Access &To) {
    if (!SE.isSCEVable(From.Pointer->getType()) || !SE.isSCEVable(To.Pointer->getType()))
      return std::nullopt;
    auto *D = dyn_cast<SCEVConstant>(SE.getMinusSCEV(SE.getSCEV(To.Pointer), SE.getSCEV(From.Pointer)));
    if (!D || D->getAPInt().getSignificantBits() > 32)
      return std::nullopt;
    return D->getAPInt().getSExtValue() + To.Offset - From.Offset;
  }

  // Whether Y is stored Distance bytes after X and, if they are copies, also loaded from there.
  bool behind(const Stored &X, const Stored &Y, int64_t Distance) {
    if (X.Element != Y.Element || !X.From != !Y.From || X.To->Size == 0 || Y.To->Size == 0)
      return false;
    return distance(*X.To, *Y.To) == Distance && (!X.From || distance(*X.From, *Y.From) == Distance);
  }

  void flush() {
    for (size_t I = 0; I < Candidates.size() && Candidates.size() > 1; I++)
      runFrom(Candidates[I]);
    Candidates.clear();
    Stores.clear();
    Loads.clear();
    Read.clear();
    Reused.clear();
  }

  const Stored *next(const Stored &X, int64_t Distance) {
    for (const Stored &Y : Candidates)
      if (behind(X, Y, Distance))
        return &Y;
    return nullptr;
  }

  // If X is the first of several adjacent stores, merges them.
  void runFrom(const Stored &X) {
    int64_t Bytes = X.To->Size;
    if (Bytes == 0 || next(X, -Bytes))
      return;
    SmallVector<const Stored *, 8> Run{&X};
    while (const Stored *Next = next(X, Bytes * Run.size()))
      Run.push_back(Next);
    for (size_t From = 0; From + 1 < Run.size();) {
      unsigned Count = bit_floor(Run.size() - From);
      while (Count > 1 && !fit(ArrayRef(Run).slice(From, Count)))
        Count /= 2;
      if (Count > 1)
        merge(ArrayRef(Run).slice(From, Count));
      From += Count;
    }
  }

  bool fit(ArrayRef<const Stored *> Run) {
    const Stored &First = *Run.front();
    bool Zero = all_of(Run, [](const Stored *S) { return S->Zero; });
    bool Cheap = First.From || Zero || Run.size() > 2 || First.To->Size * Run.size() <= 8;
    return Cheap && Code.holds(First.Element, Run.size()) && undisturbed(Run);
  }

  // Whether each other store between these is to a different object or at a known distance.
  bool undisturbed(ArrayRef<const Stored *> Run) {
    auto [Low, High] = std::minmax_element(Run.begin(), Run.end(),
                                           [](const Stored *X, const Stored *Y) { return X->Order < Y->Order; });
    const Value *Object = getUnderlyingObject(Run.front()->To->Pointer);
    for (unsigned I = (*Low)->Order; I <= (*High)->Order; I++) {
      auto *Set = dyn_cast<MemSetInst>(Stores[I]);
      const Value *Pointer = Set ? Set->getDest() : getLoadStorePointerOperand(Stores[I]);
      const Value *Other = getUnderlyingObject(Pointer);
      bool Apart = Other != Object && isIdentifiedObject(Other) && isIdentifiedObject(Object);
      Access There{Stores[I], const_cast<Value *>(Pointer), 0, 0, Align(), false, true};
      if (!Apart && !distance(*Run.front()->To, There))
        return false;
    }
    return true;
  }

  static void merge(ArrayRef<const Stored *> Run) {
    for (Access *Stored::*Side : {&Stored::To, &Stored::From}) {
      if (!(Run.front()->*Side))
        continue;
      for (const Stored *S : Run.drop_front()) {
        (Run.front()->*Side)->Size += (S->*Side)->Size;
        (S->*Side)->Size = 0;
      }
    }
  }
};

} // namespace

void merge(Function &F, Accesses &A, const Target &Code, ScalarEvolution &SE) {
  Merger M(A, Code, F.getDataLayout(), SE);
  for (BasicBlock &B : F)
    M.visit(B);
  M.finish();
}

} // namespace nodewise
