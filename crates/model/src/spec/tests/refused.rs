//! Files that cannot be read, and exactly what they print, by what is wrong with them.

mod file;

mod pod;

mod part;
