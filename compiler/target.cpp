// Predicts which instructions the code generator makes of an access, by LLVM's own rules for types that the target has
// no register for and for copies of known length.
#include "instrument.h"

#include "llvm/ADT/bit.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/CodeGen/Analysis.h"
#include "llvm/CodeGen/TargetLowering.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <map>
#include <memory>

using namespace llvm;

namespace nodewise {
namespace {

Pieces halves(unsigned Bytes) { return {{0, Bytes / 2}, {Bytes / 2, Bytes / 2}}; }

// Null: this LLVM has no such target.
const TargetMachine *machineOf(const Module &M) {
  static std::map<std::string, std::unique_ptr<TargetMachine>> Machines;
  auto [It, New] = Machines.try_emplace(M.getTargetTriple());
  if (New) {
    std::string Error;
    if (const llvm::Target *T = TargetRegistry::lookupTarget(It->first, Error))
      It->second.reset(T->createTargetMachine(It->first, "", "", TargetOptions(), std::nullopt));
  }
  return It->second.get();
}

bool isX86(const Function &F) { return Triple(F.getParent()->getTargetTriple()).isX86(); }

// The largest copy that FastISel of x86, which is used without optimisation, lowers itself.
constexpr uint64_t UnoptimisedCopy = 32;

// Whether V is computed from integers, except by a bitwise operation.
bool calculates(const Value *V) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I || !I->getOperand(0)->getType()->isIntOrIntVectorTy())
    return false;
  return (isa<BinaryOperator>(I) && !I->isBitwiseLogicOp()) ||
         isa<ICmpInst, SExtInst, ZExtInst, TruncInst, MinMaxIntrinsic>(I);
}

// Whether I is a bitwise operation whose result is used only for such computations in its block. The target then does
// it as it does those: by halves or as a whole.
bool accompanies(const Instruction &I) {
  return I.isBitwiseLogicOp() && all_of(I.users(), [&](const User *U) {
           return cast<Instruction>(U)->getParent() == I.getParent() &&
                  (calculates(U) || cast<Instruction>(U)->isBitwiseLogicOp());
         });
}

// Whether I operates on a single number, in a scalar register.
bool isScalar(const Instruction &I) {
  return !I.getType()->isVectorTy() &&
         isa<BinaryOperator, UnaryOperator, CmpInst, SExtInst, ZExtInst, GetElementPtrInst>(I);
}

} // namespace

Target::Target(const Function &F) : F(F), DL(F.getDataLayout()) {
  if (const TargetMachine *Machine = machineOf(*F.getParent()))
    Subtarget = Machine->getSubtargetImpl(F), Lowering = Subtarget->getTargetLowering();
  Optimised = !F.hasOptNone();
}

Pieces Target::loaded(const LoadInst &I) const {
  unsigned Bytes = DL.getTypeStoreSize(I.getType());
  Pieces Found;
  bool Whole = I.use_empty(), Bitwise = false, Halves[2] = {};
  auto Add = [&](int64_t Offset, unsigned Bytes) {
    if (none_of(Found, [&](const Piece &P) { return P.Offset == Offset && P.Bytes == Bytes; }))
      Found.push_back({Offset, Bytes});
  };
  for (const Use &U : I.uses()) {
    auto *User = cast<Instruction>(U.getUser());
    bool Here = User->getParent() == I.getParent() && !isa<PHINode>(User) && Optimised && I.isSimple();
    if (std::optional<Piece> Element = Here ? element(I, *User) : std::nullopt)
      Add(Element->Offset, Element->Bytes);
    else if (Here && computedByHalves(I.getType()) && calculates(User))
      Halves[0] = Halves[1] = true;
    else if (Here && computedByHalves(I.getType()) && accompanies(*User))
      Bitwise = true;
    else if (!Here || !takesHalves(U, Halves))
      Whole = true;
  }
  for (unsigned Half : {0, 1})
    if (Halves[Half])
      Add(halves(Bytes)[Half].Offset, Bytes / 2);
  if (Whole || (Bitwise && !(Halves[0] && Halves[1])))
    for (const Piece &P : pieces(I.getType(), I.getAlign(), true))
      Add(P.Offset, P.Bytes);
  return Found;
}

Pieces Target::stored(const StoreInst &I) const {
  const Value *V = I.getValueOperand();
  bool Alone = Optimised && V->hasOneUse() && isa<Instruction>(V) && cast<Instruction>(V)->getParent() == I.getParent();
  if (Alone && ((computedByHalves(V->getType()) && calculates(V)) || joinsHalves(V)))
    return halves(DL.getTypeStoreSize(V->getType()));
  return pieces(V->getType(), I.getAlign(), false);
}

// Whether the target has a register for the vector but computes on it by halves: integers under AVX without AVX2.
bool Target::computedByHalves(Type *T) const {
  return wide(T) && T->isIntOrIntVectorTy() && !Lowering->isOperationLegal(ISD::ADD, Lowering->getValueType(DL, T));
}

// Whether T is an x86 vector of more than 16 bytes (AVX), whose halves can be accessed separately.
bool Target::wide(Type *T) const {
  if (!Lowering || !isa<FixedVectorType>(T) || !isX86(F))
    return false;
  EVT Type = Lowering->getValueType(DL, T);
  return Type.isSimple() && Lowering->isTypeLegal(Type) && Type.getSizeInBits() > 128;
}

// Whether a vector is shuffled into one of half its length: then only the needed halves are loaded, each separately.
bool Target::takesHalves(const Use &U, bool (&Taken)[2]) const {
  auto *Shuffle = dyn_cast<ShuffleVectorInst>(U.getUser());
  if (!Shuffle || !wide(U->getType()))
    return false;
  int Length = cast<FixedVectorType>(U->getType())->getNumElements();
  if (int(Shuffle->getShuffleMask().size()) * 2 != Length)
    return false;
  for (int Index : Shuffle->getShuffleMask())
    if (Index >= 0 && Index / Length == int(U.getOperandNo()))
      Taken[Index % Length * 2 / Length] = true;
  return true;
}

// Whether a vector is joined from two of half its length, which are then stored separately. If one of them is constant
// and they are interleaved, the target permutes and stores the whole vector instead, if it has such a permutation.
bool Target::joinsHalves(const Value *V) const {
  auto *Shuffle = dyn_cast<ShuffleVectorInst>(V);
  if (!Shuffle || !wide(V->getType()))
    return false;
  unsigned Half = cast<FixedVectorType>(Shuffle->getOperand(0)->getType())->getNumElements();
  if (Half * 2 != Shuffle->getShuffleMask().size() || isa<UndefValue>(Shuffle->getOperand(1)))
    return false;
  return !isa<Constant>(Shuffle->getOperand(1)) || Shuffle->isConcat() ||
         (V->getType()->isFPOrFPVectorTy() && !Subtarget->checkFeatures("+avx2"));
}

// An element that is broadcast to a vector, or extracted from one: x86 loads it from memory separately.
std::optional<Piece> Target::element(const LoadInst &I, const Instruction &User) const {
  auto *T = dyn_cast<FixedVectorType>(I.getType());
  if (!T || !Lowering || !isX86(F) || T->getPrimitiveSizeInBits() % 128 != 0)
    return std::nullopt;
  Type *Of = T->getElementType();
  unsigned Bytes = DL.getTypeStoreSize(Of);
  int64_t Index = -1;
  bool Fills = false;
  if (auto *Shuffle = dyn_cast<ShuffleVectorInst>(&User)) {
    Fills = true;
    if (isa<PoisonValue>(Shuffle->getOperand(1)) && Lowering->isTypeLegal(Lowering->getValueType(DL, T)))
      Index = getSplatIndex(Shuffle->getShuffleMask());
  } else if (auto *Extract = dyn_cast<ExtractElementInst>(&User)) {
    auto *Constant = dyn_cast<ConstantInt>(Extract->getIndexOperand());
    bool Calculated = any_of(User.users(), [&](auto *U) { return isScalar(*cast<Instruction>(U)); });
    if (Constant && Calculated && Constant->getValue().ult(T->getNumElements()))
      Index = Constant->getZExtValue();
  }
  if (Index < 0)
    return std::nullopt;
  if (!Fills && Of->isIntegerTy())
    return Bytes >= 4 ? std::optional(Piece{Index * Bytes, Bytes}) : std::nullopt;
  if (!Fills && Index == 0) // in the register's lowest bits
    return wide(T) ? std::optional(Piece{0, 16}) : std::nullopt;
  bool Doubles = Of->isDoubleTy() && (!Fills || T->getNumElements() == 2);
  if (!Subtarget->checkFeatures(Doubles ? "+sse3" : T->isFPOrFPVectorTy() ? "+avx" : "+avx2"))
    return std::nullopt;
  return Piece{Index * Bytes, Bytes};
}

Pieces Target::pieces(Type *T, Align Alignment, bool Read) const {
  Pieces Found;
  uint64_t Bytes = DL.getTypeStoreSize(T).getKnownMinValue();
  if (!Lowering || isa<ScalableVectorType>(T)) {
    Found.push_back({0, unsigned(std::min<uint64_t>(Bytes, 4096))});
    return Found;
  }
  SmallVector<EVT, 4> Types;
  SmallVector<uint64_t, 4> Offsets;
  ComputeValueVTs(*Lowering, DL, T, Types, &Offsets, 0);
  for (auto [Type, Offset] : zip(Types, Offsets))
    pieces(Type, commonAlignment(Alignment, Offset), Read, Offset, Found);
  return Found;
}

void Target::pieces(EVT T, Align Alignment, bool Read, uint64_t Offset, Pieces &Found) const {
  unsigned Bytes = T.getStoreSize();
  auto [Action, Into] = Lowering->getTypeConversion(F.getContext(), T);
  switch (Action) {
  case TargetLoweringBase::TypeSplitVector: {
    auto [Low, High] = T.getVectorNumElements() % 2 ? std::pair(T, T)
                                                    : std::pair(T.getHalfNumVectorElementsVT(F.getContext()),
                                                                T.getHalfNumVectorElementsVT(F.getContext()));
    unsigned Half = Low.getStoreSize();
    pieces(Low, Alignment, Read, Offset, Found);
    return pieces(High, commonAlignment(Alignment, Half), Read, Offset + Half, Found);
  }
  case TargetLoweringBase::TypeScalarizeVector:
    return pieces(T.getVectorElementType(), Alignment, Read, Offset, Found);
  case TargetLoweringBase::TypeLegal:
    if (!T.isVector() || !slow(T, Alignment))
      return Found.push_back({int64_t(Offset), Bytes});
    return powers(Bytes, Bytes / 2, Offset, Found);
  case TargetLoweringBase::TypeWidenVector:
    if (Read && Alignment.value() >= PowerOf2Ceil(Bytes))
      return powers(Bytes, std::max<unsigned>(widest(), PowerOf2Ceil(Bytes)), Offset, Found);
    return powers(Bytes, widest(), Offset, Found);
  default:
    return powers(Bytes,
                  T.isVector()    ? widest()
                  : T.isInteger() ? DL.getLargestLegalIntTypeSizeInBits() / 8
                                  : 16,
                  Offset, Found);
  }
}

// Splits an access into powers of two of at most Most bytes.
void Target::powers(unsigned Bytes, unsigned Most, uint64_t Offset, Pieces &Found) {
  while (Bytes > 0) {
    unsigned Piece = std::min(Most, bit_floor(Bytes));
    Found.push_back({int64_t(Offset), Piece});
    Offset += Piece;
    Bytes -= std::min(Bytes, Piece);
  }
}

bool Target::slow(EVT T, Align Alignment) const {
  unsigned Fast = 0;
  bool Allowed = Lowering->allowsMemoryAccess(F.getContext(), DL, T, 0, Alignment, MachineMemOperand::MONone, &Fast);
  return T.getStoreSize() > 16 && Allowed && !Fast;
}

unsigned Target::widest() const {
  for (MVT T : {MVT::v64i8, MVT::v32i8, MVT::v16i8})
    if (Lowering->isTypeLegal(T))
      return T.getStoreSize();
  return 8;
}

bool Target::holds(Type *Element, unsigned Count) const {
  if (!Lowering || !Optimised)
    return false;
  unsigned Bytes = DL.getTypeStoreSize(Element) * Count;
  if (auto *Vector = dyn_cast<FixedVectorType>(Element))
    Element = Vector->getElementType(), Count *= Vector->getNumElements();
  EVT Whole = EVT::getVectorVT(F.getContext(), Lowering->getValueType(DL, Element), Count);
  return (Lowering->isTypeLegal(Whole) && !slow(Whole, Align(1))) ||
         (Bytes <= 8 && Lowering->isTypeLegal(MVT::getIntegerVT(Bytes * 8)));
}

// As SelectionDAG does: the last piece may overlap the one before.
std::optional<Pieces> Target::copied(const AnyMemIntrinsic &I, uint64_t Bytes) const {
  bool Sets = isa<AnyMemSetInst>(I), Moves = isa<AnyMemMoveInst>(I);
  if (!Lowering)
    return std::nullopt;
  if (!Optimised && !Moves && isX86(F))
    return unoptimised(Sets, Bytes);
  bool Small = F.hasOptSize();
  Align To = I.getDestAlign().valueOrOne(), From;
  if (auto *Copy = dyn_cast<AnyMemTransferInst>(&I))
    From = Copy->getSourceAlign().valueOrOne();
  bool Zero = false;
  if (auto *Set = dyn_cast<AnyMemSetInst>(&I); Set && isa<ConstantInt>(Set->getValue()))
    Zero = cast<ConstantInt>(Set->getValue())->isZero();
  MemOp Op = Sets ? MemOp::Set(Bytes, false, To, Zero, false)
                  : MemOp::Copy(Bytes, false, std::min(To, From), From, I.isVolatile() || Moves);
  unsigned Limit = Sets    ? Lowering->getMaxStoresPerMemset(Small)
                   : Moves ? Lowering->getMaxStoresPerMemmove(Small)
                           : Lowering->getMaxStoresPerMemcpy(Small);
  std::vector<EVT> Types;
  if (!Lowering->findOptimalMemOpLowering(Types, Limit, Op, 0, Sets ? ~0u : 0, F.getAttributes()))
    return std::nullopt;
  Pieces Found;
  uint64_t At = 0;
  for (EVT T : Types) {
    uint64_t Size = T.getStoreSize();
    At = std::min(At, Bytes - std::min(Size, Bytes));
    powers(Size, slow(T, commonAlignment(Sets ? To : std::min(To, From), At)) ? Size / 2 : Size, At, Found);
    At += Size;
  }
  return Found;
}

std::optional<Pieces> Target::unoptimised(bool Sets, uint64_t Bytes) const {
  if (Sets || Bytes > UnoptimisedCopy)
    return std::nullopt;
  Pieces Found;
  powers(Bytes, 8, 0, Found);
  return Found;
}

} // namespace nodewise
