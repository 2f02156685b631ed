; Functions of the C library that are defined here, so that nothing else has to know them. They access bytes one by one.
; The IR of clang 14, typed pointers and all. A definition in the program takes precedence over these.

define weak i64 @strlen(i8* noundef %0) {
  br label %2

2:
  %3 = phi i64 [ 0, %1 ], [ %7, %2 ]
  %4 = getelementptr inbounds i8, i8* %0, i64 %3
  %5 = load i8, i8* %4, align 1
  %6 = icmp eq i8 %5, 0
  %7 = add i64 %3, 1
  br i1 %6, label %8, label %2

8:
  ret i64 %3
}

define weak i64 @strnlen(i8* noundef %0, i64 noundef %1) {
  %3 = icmp eq i64 %1, 0
  br i1 %3, label %12, label %4

4:
  %5 = phi i64 [ %10, %9 ], [ 0, %2 ]
  %6 = getelementptr inbounds i8, i8* %0, i64 %5
  %7 = load i8, i8* %6, align 1
  %8 = icmp eq i8 %7, 0
  br i1 %8, label %12, label %9

9:
  %10 = add nuw i64 %5, 1
  %11 = icmp eq i64 %10, %1
  br i1 %11, label %12, label %4

12:
  %13 = phi i64 [ 0, %2 ], [ %5, %4 ], [ %1, %9 ]
  ret i64 %13
}

define weak i32 @strcmp(i8* noundef %0, i8* noundef %1) {
  br label %3

3:
  %4 = phi i64 [ 0, %2 ], [ %9, %3 ]
  %5 = getelementptr inbounds i8, i8* %0, i64 %4
  %6 = load i8, i8* %5, align 1
  %7 = getelementptr inbounds i8, i8* %1, i64 %4
  %8 = load i8, i8* %7, align 1
  %9 = add i64 %4, 1
  %10 = icmp ne i8 %6, 0
  %11 = icmp eq i8 %6, %8
  %12 = select i1 %10, i1 %11, i1 false
  br i1 %12, label %3, label %13

13:
  %14 = zext i8 %8 to i32
  %15 = zext i8 %6 to i32
  %16 = sub nsw i32 %15, %14
  ret i32 %16
}

define weak i32 @strncmp(i8* noundef %0, i8* noundef %1, i64 noundef %2) {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %21, label %5

5:
  %6 = phi i64 [ %14, %5 ], [ 0, %3 ]
  %7 = getelementptr inbounds i8, i8* %0, i64 %6
  %8 = load i8, i8* %7, align 1
  %9 = getelementptr inbounds i8, i8* %1, i64 %6
  %10 = load i8, i8* %9, align 1
  %11 = icmp eq i8 %8, %10
  %12 = icmp ne i8 %8, 0
  %13 = and i1 %12, %11
  %14 = add nuw i64 %6, 1
  %15 = icmp ult i64 %14, %2
  %16 = select i1 %13, i1 %15, i1 false
  br i1 %16, label %5, label %17

17:
  %18 = zext i8 %8 to i32
  %19 = zext i8 %10 to i32
  %20 = sub nsw i32 %18, %19
  br label %21

21:
  %22 = phi i32 [ %20, %17 ], [ 0, %3 ]
  ret i32 %22
}

define weak i8* @strcpy(i8* noundef %0, i8* noundef %1) {
  br label %3

3:
  %4 = phi i64 [ 0, %2 ], [ %8, %3 ]
  %5 = getelementptr inbounds i8, i8* %1, i64 %4
  %6 = load i8, i8* %5, align 1
  %7 = getelementptr inbounds i8, i8* %0, i64 %4
  store i8 %6, i8* %7, align 1
  %8 = add i64 %4, 1
  %9 = icmp eq i8 %6, 0
  br i1 %9, label %10, label %3

10:
  ret i8* %0
}

define weak i8* @strncpy(i8* noundef %0, i8* noundef %1, i64 noundef %2) {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %5, label %6

5:
  ret i8* %0

6:
  %7 = phi i64 [ %16, %13 ], [ 0, %3 ]
  %8 = phi i8 [ %14, %13 ], [ 1, %3 ]
  %9 = icmp eq i8 %8, 0
  br i1 %9, label %13, label %10

10:
  %11 = getelementptr inbounds i8, i8* %1, i64 %7
  %12 = load i8, i8* %11, align 1
  br label %13

13:
  %14 = phi i8 [ %12, %10 ], [ 0, %6 ]
  %15 = getelementptr inbounds i8, i8* %0, i64 %7
  store i8 %14, i8* %15, align 1
  %16 = add nuw i64 %7, 1
  %17 = icmp eq i64 %16, %2
  br i1 %17, label %5, label %6
}

define weak i8* @strchr(i8* noundef %0, i32 noundef %1) {
  %3 = shl i32 %1, 24
  %4 = ashr exact i32 %3, 24
  br label %5

5:
  %6 = phi i64 [ 0, %2 ], [ %16, %5 ]
  %7 = phi i8* [ undef, %2 ], [ %14, %5 ]
  %8 = getelementptr inbounds i8, i8* %0, i64 %6
  %9 = load i8, i8* %8, align 1
  %10 = sext i8 %9 to i32
  %11 = icmp eq i32 %4, %10
  %12 = icmp eq i8 %9, 0
  %13 = select i1 %12, i8* null, i8* %7
  %14 = select i1 %11, i8* %8, i8* %13
  %15 = or i1 %12, %11
  %16 = add i64 %6, 1
  br i1 %15, label %17, label %5

17:
  ret i8* %14
}

define weak i32 @memcmp(i8* noundef %0, i8* noundef %1, i64 noundef %2) {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %19, label %7

5:
  %6 = icmp eq i64 %14, %2
  br i1 %6, label %19, label %7

7:
  %8 = phi i64 [ %14, %5 ], [ 0, %3 ]
  %9 = getelementptr inbounds i8, i8* %0, i64 %8
  %10 = load i8, i8* %9, align 1
  %11 = getelementptr inbounds i8, i8* %1, i64 %8
  %12 = load i8, i8* %11, align 1
  %13 = icmp eq i8 %10, %12
  %14 = add nuw i64 %8, 1
  br i1 %13, label %5, label %15

15:
  %16 = zext i8 %12 to i32
  %17 = zext i8 %10 to i32
  %18 = sub nsw i32 %17, %16
  br label %19

19:
  %20 = phi i32 [ %18, %15 ], [ 0, %3 ], [ 0, %5 ]
  ret i32 %20
}

define weak i8* @memchr(i8* noundef %0, i32 noundef %1, i64 noundef %2) {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %17, label %5

5:
  %6 = trunc i32 %1 to i8
  br label %7

7:
  %8 = phi i64 [ 0, %5 ], [ %13, %12 ]
  %9 = getelementptr inbounds i8, i8* %0, i64 %8
  %10 = load i8, i8* %9, align 1
  %11 = icmp eq i8 %10, %6
  br i1 %11, label %15, label %12

12:
  %13 = add nuw i64 %8, 1
  %14 = icmp eq i64 %13, %2
  br i1 %14, label %17, label %7

15:
  %16 = getelementptr inbounds i8, i8* %0, i64 %8
  br label %17

17:
  %18 = phi i8* [ %16, %15 ], [ null, %3 ], [ null, %12 ]
  ret i8* %18
}

define weak i32 @abs(i32 noundef %0) {
  %2 = icmp slt i32 %0, 0
  %3 = sub nsw i32 0, %0
  %4 = select i1 %2, i32 %3, i32 %0
  ret i32 %4
}

define weak i64 @labs(i64 noundef %0) {
  %2 = icmp slt i64 %0, 0
  %3 = sub nsw i64 0, %0
  %4 = select i1 %2, i64 %3, i64 %0
  ret i64 %4
}
