//! Recursive programs: reachability within a number of rounds, by summaries of procedures.
