// Tickets: numbers that threads take from a shared counter, by an atomic operation or under a lock. If such a number
// selects the part of the data that a thread works on, parts go to other threads in another run. Which thread takes a
// number, and whether it takes more than one, is logged (nw_ticket); what the number selects is not known here.
#include "instrument.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nodewise {
namespace {

// Whether this use of the number selects nothing: it is stored back, used to take the next number, or compared, with a
// constant or in the block that takes it, as reference counts and barriers do.
bool isBookkeeping(const User &By, const Instruction &Number, const Value *Counter) {
  if (auto *C = dyn_cast<CmpInst>(&By))
    return C->getParent() == Number.getParent() || isa<Constant>(C->getOperand(0)) || isa<Constant>(C->getOperand(1));
  if (auto *S = dyn_cast<StoreInst>(&By))
    return S->getPointerOperand()->stripPointerCasts() == Counter;
  return isa<IntrinsicInst, AtomicCmpXchgInst>(By);
}

// Whether the number is used for anything else.
bool isUsed(Instruction *Number, const Value *Counter) {
  SmallPtrSet<Value *, 16> Seen;
  SmallVector<Value *, 16> Left{Number};
  while (!Left.empty()) {
    Value *V = Left.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    for (Use &U : V->uses()) {
      User *By = U.getUser();
      if (isa<BinaryOperator, CastInst, PHINode, SelectInst, ExtractValueInst, FreezeInst, MinMaxIntrinsic>(By))
        Left.push_back(By);
      else if (!isBookkeeping(*By, *Number, Counter))
        return true;
    }
  }
  return false;
}

bool isStep(const Value *V, const Value *From) {
  auto *Sum = dyn_cast<BinaryOperator>(V);
  return Sum && (Sum->getOpcode() == Instruction::Add || Sum->getOpcode() == Instruction::Sub) &&
         Sum->getOperand(0) == From && isa<ConstantInt>(Sum->getOperand(1));
}

bool locks(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Callee && StringSwitch<bool>(Callee->getName())
                       .Cases("pthread_mutex_lock", "pthread_spin_lock", "pthread_rwlock_wrlock", "mtx_lock", true)
                       .Cases("__kmpc_critical", "__kmpc_critical_with_hint", "omp_set_lock", "sem_wait", true)
                       .Cases("_ZNSt5mutex4lockEv", "_ZNSt10lock_guardISt5mutexEC2ERS0_",
                              "_ZNSt11unique_lockISt5mutexEC2ERS0_", true)
                       .Default(false);
}

// The instruction after which a ticket has been taken; null where this one takes none.
Instruction *taken(Instruction &I, bool Locked) {
  if (auto *X = dyn_cast<AtomicRMWInst>(&I)) {
    bool Counts = X->getOperation() == AtomicRMWInst::Add || X->getOperation() == AtomicRMWInst::Sub;
    return Counts && isUsed(X, X->getPointerOperand()) ? X : nullptr;
  }
  if (auto *X = dyn_cast<AtomicCmpXchgInst>(&I)) {
    auto *Before = dyn_cast<Instruction>(X->getCompareOperand());
    return Before && isStep(X->getNewValOperand(), Before) && isUsed(Before, X->getPointerOperand()) ? X : nullptr;
  }
  auto *Store = dyn_cast<StoreInst>(&I);
  if (!Store || !Locked || isa<AllocaInst>(getUnderlyingObject(Store->getPointerOperand())))
    return nullptr;
  auto *Sum = dyn_cast<BinaryOperator>(Store->getValueOperand());
  auto *Before = Sum ? dyn_cast<LoadInst>(Sum->getOperand(0)) : nullptr;
  const Value *Counter = Store->getPointerOperand()->stripPointerCasts();
  bool Counts = Before && isStep(Sum, Before) && Before->getPointerOperand()->stripPointerCasts() == Counter;
  return Counts && isUsed(Before, Counter) ? Store : nullptr;
}

} // namespace

SmallVector<Instruction *, 2> tickets(Function &F) {
  bool Locked = any_of(instructions(F), locks);
  SmallVector<Instruction *, 2> Found;
  for (Instruction &I : instructions(F))
    if (Instruction *At = taken(I, Locked); At && !At->isTerminator())
      Found.push_back(At);
  return Found;
}

void emitTickets(Function &F, ArrayRef<Instruction *> Taken) {
  Module &M = *F.getParent();
  for (Instruction *At : Taken) {
    Type *I32 = Type::getInt32Ty(M.getContext());
    auto *Id = new GlobalVariable(M, I32, false, GlobalValue::PrivateLinkage, ConstantInt::get(I32, 0), "nw.ticket");
    IRBuilder<> B(At->getNextNode());
    B.SetCurrentDebugLocation(At->getDebugLoc());
    Value *Counter = nullptr;
    Value *Success = B.getInt32(1);
    if (auto *X = dyn_cast<AtomicRMWInst>(At))
      Counter = X->getPointerOperand();
    else if (auto *S = dyn_cast<StoreInst>(At))
      Counter = S->getPointerOperand();
    else if (auto *C = dyn_cast<AtomicCmpXchgInst>(At)) {
      Counter = C->getPointerOperand();
      Success = B.CreateZExt(B.CreateExtractValue(C, 1), I32);
    }
    Value *Address = B.CreatePtrToInt(Counter, B.getInt64Ty());
    callRuntime(B, "nw_ticket", B.getVoidTy(), {Id, Address, Success});
  }
}

} // namespace nodewise
