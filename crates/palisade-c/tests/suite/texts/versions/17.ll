; Opaque pointers, `memory(...)`, `nofpclass`, marks of lifetimes without casts.
source_filename = "pass.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%struct.box = type { i32, [4 x i16] }

@box = dso_local global %struct.box zeroinitializer, align 4, !dbg !0
@flag = dso_local global i32 0, align 4

define dso_local void @put(i32 noundef %n) #0 !dbg !10 {
entry:
  %n.addr = alloca i32, align 4
  %i = alloca i32, align 4
  store i32 %n, ptr %n.addr, align 4
  call void @llvm.dbg.declare(metadata ptr %n.addr, metadata !13, metadata !DIExpression()), !dbg !14
  call void @llvm.lifetime.start.p0(i64 4, ptr %i) #3, !dbg !15
  call void @llvm.dbg.declare(metadata ptr %i, metadata !16, metadata !DIExpression()), !dbg !15
  %0 = load i32, ptr %n.addr, align 4, !dbg !15
  %or = or i32 %0, 2, !dbg !15
  store i32 %or, ptr %i, align 4, !dbg !15
  %1 = load i32, ptr %i, align 4, !dbg !17
  %idx = zext i32 %1 to i64, !dbg !17
  %slot = getelementptr inbounds [4 x i16], ptr getelementptr inbounds (%struct.box, ptr @box, i32 0, i32 1), i64 0, i64 %idx, !dbg !17
  %2 = trunc i32 %1 to i16, !dbg !17
  store i16 %2, ptr %slot, align 2, !dbg !17
  store i32 7, ptr @box, align 4, !dbg !17
  %3 = call i32 @abs(i32 noundef %1) #4, !dbg !18
  store atomic i32 %3, ptr @flag release, align 4, !dbg !18
  call void @llvm.lifetime.end.p0(i64 4, ptr %i) #3, !dbg !18
  ret void, !dbg !18
}

define dso_local void @get() #0 !dbg !20 {
entry:
  %0 = load atomic i32, ptr @flag acquire, align 4, !dbg !21
  %tobool = icmp ne i32 %0, 0, !dbg !21
  br i1 %tobool, label %then, label %done, !dbg !21

then:                                             ; preds = %entry
  %1 = load i32, ptr @box, align 4, !dbg !22
  %2 = load i16, ptr getelementptr inbounds (%struct.box, ptr @box, i32 0, i32 1, i64 2), align 2, !dbg !22
  %conv = sext i16 %2 to i32, !dbg !22
  %sum = add nsw i32 %1, %conv, !dbg !22
  %ok = icmp slt i32 %sum, 10, !dbg !22
  br i1 %ok, label %done, label %wrong, !dbg !22

wrong:                                            ; preds = %then
  call void @abort() #5, !dbg !22
  unreachable, !dbg !22

done:                                             ; preds = %then, %entry
  ret void, !dbg !23
}

declare void @llvm.dbg.declare(metadata, metadata, metadata) #1
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #2
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #2
declare i32 @abs(i32 noundef) #4
declare void @abort() #5
declare nofpclass(nan inf) float @unused(float nofpclass(nan))

attributes #0 = { noinline nounwind uwtable "frame-pointer"="all" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { nounwind }
attributes #4 = { nounwind willreturn memory(none) }
attributes #5 = { noreturn nounwind }

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!5, !6}
!llvm.ident = !{!7}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "box", scope: !2, file: !3, line: 2, type: !8, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3, producer: "clang", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, globals: !4, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "pass.c", directory: "/work")
!4 = !{!0}
!5 = !{i32 2, !"Debug Info Version", i32 3}
!6 = !{i32 1, !"wchar_size", i32 4}
!7 = !{!"clang"}
!8 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "box", file: !3, line: 1, size: 96, elements: !9)
!9 = !{}
!10 = distinct !DISubprogram(name: "put", scope: !3, file: !3, line: 4, type: !11, scopeLine: 4, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !9)
!11 = !DISubroutineType(types: !12)
!12 = !{null, !19}
!13 = !DILocalVariable(name: "n", arg: 1, scope: !10, file: !3, line: 4, type: !19)
!14 = !DILocation(line: 4, column: 14, scope: !10)
!15 = !DILocation(line: 5, column: 9, scope: !10)
!16 = !DILocalVariable(name: "i", scope: !10, file: !3, line: 5, type: !19)
!17 = !DILocation(line: 6, column: 5, scope: !10)
!18 = !DILocation(line: 7, column: 5, scope: !10)
!19 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!20 = distinct !DISubprogram(name: "get", scope: !3, file: !3, line: 10, type: !11, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !9)
!21 = !DILocation(line: 11, column: 9, scope: !20)
!22 = !DILocation(line: 12, column: 9, scope: !20)
!23 = !DILocation(line: 13, column: 1, scope: !20)
