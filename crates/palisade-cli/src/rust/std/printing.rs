//! Printing: arguments are evaluated, and nothing is printed.

#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => {{
        let _ = $crate::format_args!($($arguments)*);
    }};
}

#[macro_export]
macro_rules! println {
    () => {{}};
    ($($arguments:tt)*) => {{
        let _ = $crate::format_args!($($arguments)*);
    }};
}

#[macro_export]
macro_rules! eprint {
    ($($arguments:tt)*) => {{
        let _ = $crate::format_args!($($arguments)*);
    }};
}

#[macro_export]
macro_rules! eprintln {
    () => {{}};
    ($($arguments:tt)*) => {{
        let _ = $crate::format_args!($($arguments)*);
    }};
}

#[macro_export]
macro_rules! dbg {
    () => {{}};
    ($value:expr $(,)?) => {
        match $value {
            value => {
                let _ = $crate::format_args!("{:?}", &value);
                value
            }
        }
    };
    ($($value:expr),+ $(,)?) => {
        ($($crate::dbg!($value)),+,)
    };
}
