//! The choice of SBP signatures: a table in text form, the search against plain enumeration, and what a program asks for.

mod asked;
mod declared;
mod enumerated;
mod question;
mod spread;
mod table;
