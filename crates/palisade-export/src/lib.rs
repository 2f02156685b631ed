//! Programs for other tools: Promela and C.
