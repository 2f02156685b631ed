; All lexical forms, and constructs that are rare.
source_filename = "a \22quoted\22 name.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

module asm ".globl nothing"
module asm "nothing: ret"

$shared = comdat any
$"a comdat" = comdat nodeduplicate

%"a type" = type { i8, i32 }
%0 = type <{ i8, ptr, [0 x i64] }>
%-odd.$name = type {}

@0 = private unnamed_addr constant [3 x i8] c"\00\FF\\", align 1
@"a name" = dso_local local_unnamed_addr global %"a type" zeroinitializer, section ".data \22x\22", comdat($shared), align 4
@"\01asm_name" = hidden global i64 u0xFF
@"\C3\A9" = weak_odr protected global i32 -2147483648
@packed = global %0 <{ i8 1, ptr @0, [0 x i64] zeroinitializer }>
@wide = global i128 -170141183460469231731687303715884105728
@widest = global i256 -1
@bool = global i1 true
@any = global { i32, i32 } { i32 undef, i32 poison }
@float = global float 1.500000e+00
@double = global double 0x3FF8000000000000
@long_double = global x86_fp80 0xK3FFF8000000000000000
@vector = global <4 x i32> <i32 1, i32 2, i32 3, i32 4>
@splat = global <4 x i32> splat (i32 7)
@difference = global i64 sub (i64 ptrtoint (ptr @bool to i64), i64 ptrtoint (ptr @wide to i64))
@chosen = global ptr getelementptr inbounds nuw ([4 x i8], ptr @"a name", i64 0, i64 2)
@labels = internal global [2 x ptr] [ptr blockaddress(@jumps, %one), ptr blockaddress(@jumps, %"t w o")]
@tls = thread_local(initialexec) global i32 0
@weak = extern_weak global i32
@common = common global [4 x i32] zeroinitializer, align 16
@far = addrspace(256) global i32 0
@renamed = weak alias i32, ptr @tls
@llvm.used = appending global [1 x ptr] [ptr @common], section "llvm.metadata"

define linkonce_odr hidden fastcc noundef zeroext i1 @"a function"(ptr noalias nocapture noundef nonnull align 8 dereferenceable(8) byval(%"a type") %"a b", i32 %0, ...) unnamed_addr #3 section ".text" comdat($shared) align 16 personality ptr @personality !dbg !3 {
  %2 = add nuw nsw i32 %0, -1
  %"c d" = icmp samesign ult i32 %2, 5
  br i1 %"c d", label %3, label %4

3:
  ret i1 true

4:                                                ; preds = %1
  ret i1 false
}

define ptr @jumps(ptr %to) {
  indirectbr ptr %to, [label %one, label %"t w o"]

one:
  ret ptr null

"t w o":
  ret ptr blockaddress(@jumps, %one)
}

define i32 @numbers(i32, i32) {
  %3 = add i32 %0, %1
  call i32 @numbers(i32 %3, i32 0)
  %5 = or disjoint i32 %4, 1
  %6 = freeze i32 %5
  br label %7

7:
  %8 = phi i32 [ %6, %2 ], [ %9, %7 ]
  %9 = lshr exact i32 %8, 1
  %10 = trunc nuw i32 %9 to i1
  br i1 %10, label %11, label %7

11:
  switch i32 %9, label %12 [
    i32 0, label %13
    i32 -7, label %12
  ], !prof !4

12:
  unreachable

13:
  ret i32 %9
}

define void @unwinds() personality ptr @personality {
start:
  %r = invoke i32 @may_throw(i32 1) #3
          to label %fine unwind label %pad

fine:
  ret void

pad:
  %l = landingpad { ptr, i32 }
          cleanup
          catch ptr null
          filter [1 x ptr] [ptr @bool]
  %p = extractvalue { ptr, i32 } %l, 0
  %m = insertvalue { ptr, i32 } %l, ptr %p, 0
  resume { ptr, i32 } %m
}

define void @assembly(ptr %p) {
  callbr void asm sideeffect alignstack "jmp ${0:l}", "!i,~{memory}"()
          to label %next [label %other]

next:
  %t = tail call i32 asm inteldialect "mov $0, $1", "=r,*m"(ptr elementtype(i32) %p)
  call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 8), "nonnull"(ptr %p) ]
  ret void

other:
  %n0 = load i32, ptr %p, align 4
  %n = musttail call preserve_mostcc noundef i32 @may_throw(i32 noundef %n0) nounwind
  ret void
}

declare i32 @personality(...)
declare noalias noundef ptr @allocate(i64 noundef) local_unnamed_addr #3
declare i32 @may_throw(i32)
declare void @llvm.assume(i1 noundef)

attributes #3 = { nounwind allockind("alloc,zeroed") allocsize(0) memory(argmem: read) alignstack=16 "a"="b" "c" uwtable(sync) }

uselistorder ptr @bool, { 1, 0 }

!named = !{!0, !1}
!0 = !{!"text \22", i32 5, null, !1, !{!2}, ptr @bool}
!1 = distinct !{}
!2 = !DITemplateTypeParameter(name: "T", type: !1)
!3 = distinct !DISubprogram(name: "a function", linkageName: "x", scope: null, flags: DIFlagPrototyped | DIFlagArtificial, spFlags: DISPFlagDefinition)
!4 = !{!"branch_weights", i32 1, i32 2, i32 3}

^0 = module: (path: "x", hash: (1, 2, 3, 4, 5))
^1 = flags: 8
