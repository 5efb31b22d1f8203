// Data structures of the pass: a function's memory accesses, and how they are counted.
//
//   target    target.cpp     an access     -> the instructions that the code generator will make of it
//   merge     merge.cpp      accesses      -> fewer, where it makes one instruction of several
//   collect   accesses.cpp   instructions  -> accesses
//   plan      plan.cpp       accesses      -> groups: per loop where that is exact, else per block
//   emit      emit.cpp       groups        -> calls and inlined lookups
//   region    region.cpp     outlined OpenMP functions -> regions
//   tickets   tickets.cpp    numbers taken from shared counters -> events
//
// The rules of counting are in runtime/runtime.h; this only decides where the code goes.
#ifndef NODEWISE_INSTRUMENT_H
#define NODEWISE_INSTRUMENT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/ValueTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class DominatorTree;
class LoopInfo;
class SCEV;
class ScalarEvolution;
class TargetLibraryInfo;
class TargetLowering;
class TargetSubtargetInfo;
class AnyMemIntrinsic;
} // namespace llvm

namespace nodewise {

// Size of an access by memcpy, memmove and memset if the library function is called.
constexpr unsigned WordBytes = 8;

// The part of an access that one instruction makes; Offset is from the access's address.
struct Piece {
  int64_t Offset;
  unsigned Bytes;
};
using Pieces = llvm::SmallVector<Piece, 4>;

// Predicts how the code generator accesses memory in a function.
class Target {
public:
  explicit Target(const llvm::Function &F);

  Pieces loaded(const llvm::LoadInst &I) const;
  Pieces stored(const llvm::StoreInst &I) const;

  // The pieces of a memcpy, memmove or memset of constant length; none if the code generator calls the library function
  // or uses a repeated string instruction.
  std::optional<Pieces> copied(const llvm::AnyMemIntrinsic &I, uint64_t Bytes) const;

  bool optimises() const { return Lowering && Optimised; }

  // Whether one instruction can copy this many adjacent elements of a type.
  bool holds(llvm::Type *Element, unsigned Count) const;

private:
  Pieces pieces(llvm::Type *T, llvm::Align Alignment, bool Read) const;
  void pieces(llvm::EVT T, llvm::Align Alignment, bool Read, uint64_t Offset, Pieces &Found) const;
  bool wide(llvm::Type *T) const;
  bool computedByHalves(llvm::Type *T) const;
  bool takesHalves(const llvm::Use &U, bool (&Taken)[2]) const;
  bool joinsHalves(const llvm::Value *V) const;
  std::optional<Piece> element(const llvm::LoadInst &I, const llvm::Instruction &User) const;
  static void powers(unsigned Bytes, unsigned Most, uint64_t Offset, Pieces &Found);
  bool slow(llvm::EVT T, llvm::Align Alignment) const;
  unsigned widest() const;
  std::optional<Pieces> unoptimised(bool Sets, uint64_t Bytes) const;

  const llvm::Function &F;
  const llvm::DataLayout &DL;
  const llvm::TargetSubtargetInfo *Subtarget = nullptr;
  const llvm::TargetLowering *Lowering = nullptr; // null: unknown target, each access is taken as one instruction
  bool Optimised;
};

// An access of fixed size at one address.
struct Access {
  llvm::Instruction *At;
  llvm::Value *Pointer;
  int64_t Offset; // from Pointer
  unsigned Size;
  llvm::Align Alignment;
  bool Read, Write;
};

// memcpy, memmove or memset with a length that is not a small constant.
struct Bulk {
  llvm::Instruction *At;
  llvm::Value *Pointer, *Bytes;
  bool Read, Write;
};

// Vector accesses under a mask. Pointer is one pointer, or a vector of them (gather, scatter).
struct Masked {
  llvm::Instruction *At;
  llvm::Value *Pointer, *Mask;
  unsigned LaneBytes;
  bool Read, Write;
};

struct Accesses {
  llvm::SmallVector<Access, 0> Plain;
  llvm::SmallVector<Bulk, 0> Bulks;
  llvm::SmallVector<Masked, 0> Maskeds;
  bool empty() const { return Plain.empty() && Bulks.empty() && Maskeds.empty(); }
};

Accesses collect(llvm::Function &F, const llvm::TargetLibraryInfo &TLI, const Target &Code);

// Merges accesses for which the code generator makes a single instruction.
void merge(llvm::Function &F, Accesses &A, const Target &Code, llvm::ScalarEvolution &SE);

// A member of a group; Offset is from the group's address.
struct Member {
  int64_t Offset;
  unsigned Size, Reads, Writes;
  bool operator==(const Member &O) const {
    return Offset == O.Offset && Size == O.Size && Reads == O.Reads && Writes == O.Writes;
  }
};

// Accesses at fixed distances, counted together: nw_group.
struct Group {
  llvm::SmallVector<Member, 4> Members; // ascending by offset, the first at 0
  bool OneLine; // a single access that cannot straddle a cache line
  // The smallest stride, in bytes, at which cache lines may be skipped between two repetitions of the group.
  unsigned sparse() const { return span() + 64; }
  unsigned span() const;
  unsigned last() const { return Members.back().Offset; }
  unsigned reads() const;
  unsigned writes() const;
};

// A group that is counted at its first access, whose address is Pointer + Offset.
struct BlockGroup {
  Group G;
  llvm::Instruction *At;
  llvm::Value *Pointer;
  int64_t Offset;
};

// A group counted in a loop's preheader, for all iterations at once.
struct LoopGroup {
  Group G;
  llvm::Instruction *At; // end of the preheader
  llvm::DebugLoc Where;
  const llvm::SCEV *Base, *Stride, *Count; // Stride and Count are 64 bits wide; Count null: see Counted
  const llvm::SCEV *Across = nullptr; // one iteration has Repeats such groups, at this distance from each other
  unsigned Repeats = 1;
  // The enclosing loop, if its iterations can be counted together: at that loop's entry, or at its exits if Count is
  // null. At is null if they cannot.
  struct Nest {
    llvm::Instruction *At = nullptr;
    const llvm::SCEV *Base = nullptr, *Stride = nullptr, *Count = nullptr;
  } Outer = {};
  // If the number of iterations is known only after the loop has run: a block that runs as often as the group is to be
  // counted. The group is then counted at the loop's exits.
  llvm::BasicBlock *Counted = nullptr;
  bool Always = false; // Counted has run at least once at every exit
  llvm::SmallVector<llvm::BasicBlock *, 2> Exits = {};
};

struct Plan {
  llvm::SmallVector<BlockGroup, 0> Blocks;
  llvm::SmallVector<LoopGroup, 0> Loops;
};

enum class Scheme {
  Auto, // summaries and groups
  Single, // one call per access
  Check, // Auto, and one call per access to a second set of functions, defined in tests/oracle
};

Plan plan(llvm::ArrayRef<Access> Plain, llvm::ScalarEvolution &SE, llvm::LoopInfo &LI, llvm::DominatorTree &DT);

void emit(llvm::Function &F, const Plan &P, const Accesses &A, llvm::ScalarEvolution &SE, llvm::LoopInfo &LI,
          llvm::DominatorTree &DT);

// One call per access, of functions whose names begin with Prefix.
void emitSingly(llvm::Function &F, const Accesses &A, llvm::StringRef Prefix);

// A call of a runtime function. These functions preserve nearly all registers (preserve_most), so they must not be
// bound lazily: the dynamic linker's resolver would not preserve them.
llvm::CallInst *callRuntime(llvm::IRBuilder<> &B, llvm::StringRef Name, llvm::Type *Result,
                            llvm::ArrayRef<llvm::Value *> Arguments);

// Outlined OpenMP functions set the thread's region while they run.
bool isOutlined(const llvm::Function &F);
void emitRegion(llvm::Function &F);

// The instructions after which a number has been taken from a shared counter. Call this before instrumentation is
// inserted.
llvm::SmallVector<llvm::Instruction *, 2> tickets(llvm::Function &F);
void emitTickets(llvm::Function &F, llvm::ArrayRef<llvm::Instruction *> Taken);

} // namespace nodewise

#endif
