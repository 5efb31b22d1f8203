// Collects a function's memory accesses: instruction, address and size.
#include "instrument.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace nodewise {
namespace {

class Collector {
public:
  Collector(Function &F, const TargetLibraryInfo &TLI, const Target &Code)
      : DL(F.getDataLayout()), TLI(TLI), Code(Code) {}

  void visit(Instruction &I) {
    if (auto *L = dyn_cast<LoadInst>(&I))
      L->isAtomic() ? atomic(I, L->getPointerOperand(), L->getType(), L->getAlign(), true, false)
                    : add(I, L->getPointerOperand(), Code.loaded(*L), L->getAlign(), true, false);
    else if (auto *S = dyn_cast<StoreInst>(&I))
      S->isAtomic() ? atomic(I, S->getPointerOperand(), S->getValueOperand()->getType(), S->getAlign(), false, true)
                    : add(I, S->getPointerOperand(), Code.stored(*S), S->getAlign(), false, true);
    else if (auto *X = dyn_cast<AtomicRMWInst>(&I))
      atomic(I, X->getPointerOperand(), X->getType(), X->getAlign(), true, true);
    else if (auto *C = dyn_cast<AtomicCmpXchgInst>(&I))
      atomic(I, C->getPointerOperand(), C->getNewValOperand()->getType(), C->getAlign(), true, true);
    else if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&I))
      intrinsic(*Intrinsic);
    else if (auto *Call = dyn_cast<CallBase>(&I))
      library(*Call);
  }

  Accesses Found;

private:
  const DataLayout &DL;
  const TargetLibraryInfo &TLI;
  const Target &Code;

  // Whether accesses to this address are counted. Local variables that optimisation would keep in registers do not
  // count as memory.
  static bool counted(const Value *Pointer) {
    if (cast<PointerType>(Pointer->getType()->getScalarType())->getAddressSpace() != 0)
      return false;
    if (Pointer->isSwiftError())
      return false;
    auto *Local = dyn_cast<AllocaInst>(Pointer->stripPointerCasts());
    return !Local || !isAllocaPromotable(Local);
  }

  void atomic(Instruction &I, Value *Pointer, Type *T, Align Alignment, bool Read, bool Write) {
    add(I, Pointer, {{0, unsigned(DL.getTypeStoreSize(T))}}, Alignment, Read, Write);
  }

  void add(Instruction &I, Value *Pointer, ArrayRef<Piece> Pieces, Align Alignment, bool Read, bool Write) {
    for (const Piece &P : Pieces)
      if (P.Bytes > 0 && counted(Pointer))
        Found.Plain.push_back({&I, Pointer, P.Offset, P.Bytes, commonAlignment(Alignment, P.Offset), Read, Write});
  }

  void bulk(Instruction &I, Value *Pointer, Value *Bytes, MaybeAlign Alignment, bool Read, bool Write) {
    if (!counted(Pointer))
      return;
    auto *Constant = dyn_cast<ConstantInt>(Bytes);
    auto *Copy = dyn_cast<AnyMemIntrinsic>(&I);
    if (Constant && Constant->isZero())
      return;
    if (Constant && Copy)
      if (std::optional<Pieces> Pieces = Code.copied(*Copy, Constant->getZExtValue()))
        return add(I, Pointer, *Pieces, Alignment.valueOrOne(), Read, Write);
    Found.Bulks.push_back({&I, Pointer, Bytes, Read, Write});
  }

  void masked(Instruction &I, Value *Pointer, Value *Mask, Type *Data, bool Read, bool Write) {
    if (!counted(Pointer) || !isa<FixedVectorType>(Data))
      return;
    uint64_t Lane = DL.getTypeStoreSize(Data->getScalarType());
    Found.Maskeds.push_back({&I, Pointer, Mask, unsigned(Lane), Read, Write});
  }

  void intrinsic(IntrinsicInst &I) {
    switch (I.getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather:
      return masked(I, I.getArgOperand(0), I.getArgOperand(2), I.getType(), true, false);
    case Intrinsic::masked_expandload:
      return masked(I, I.getArgOperand(0), I.getArgOperand(1), I.getType(), true, false);
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
      return masked(I, I.getArgOperand(1), I.getArgOperand(3), I.getArgOperand(0)->getType(), false, true);
    case Intrinsic::masked_compressstore:
      return masked(I, I.getArgOperand(1), I.getArgOperand(2), I.getArgOperand(0)->getType(), false, true);
    default:
      break;
    }
    if (auto *Copy = dyn_cast<AnyMemTransferInst>(&I))
      bulk(I, Copy->getRawSource(), Copy->getLength(), Copy->getSourceAlign(), true, false);
    if (auto *Write = dyn_cast<AnyMemIntrinsic>(&I))
      bulk(I, Write->getRawDest(), Write->getLength(), Write->getDestAlign(), false, true);
  }

  // Calls of library functions that were not turned into intrinsics (-fno-builtin, casts).
  void library(CallBase &Call) {
    LibFunc Name;
    if (!TLI.getLibFunc(Call, Name))
      return;
    if (Name != LibFunc_memcpy && Name != LibFunc_memmove && Name != LibFunc_memset && Name != LibFunc_mempcpy)
      return;
    if (Name != LibFunc_memset)
      bulk(Call, Call.getArgOperand(1), Call.getArgOperand(2), {}, true, false);
    bulk(Call, Call.getArgOperand(0), Call.getArgOperand(2), {}, false, true);
  }
};

} // namespace

Accesses collect(Function &F, const TargetLibraryInfo &TLI, const Target &Code) {
  Collector C(F, TLI, Code);
  for (BasicBlock &B : F)
    for (Instruction &I : B)
      C.visit(I);
  return std::move(C.Found);
}

} // namespace nodewise
