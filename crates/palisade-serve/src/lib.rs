//! The playground: a local web page for checking programs.
