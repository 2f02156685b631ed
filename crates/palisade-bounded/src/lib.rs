//! Store buffers away: translations of TSO programs to SC programs, with a bound on rounds or on the age of stores.
