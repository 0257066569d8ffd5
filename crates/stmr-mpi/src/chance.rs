//! Names of chance: all replicas draw the same.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use crate::files::{failed, last_error};
use crate::names;
use crate::stack;

/// Letters of a name of chance.
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// How many names are tried.
const TRIES_MAX: u32 = 1000;

/// Puts six letters that all replicas draw alike before the `rest` last bytes of a template, until
/// `make` has made something of that name.
unsafe fn with_chance(
    template: *mut c_char,
    rest: c_int,
    make: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let length = unsafe { libc::strlen(template) };
    let Some(start) = length.checked_sub(6 + usize::try_from(rest).unwrap_or(length)) else {
        return failed(libc::EINVAL);
    };
    let row = unsafe { std::slice::from_raw_parts_mut(template.cast::<u8>().add(start), 6) };
    if row != b"XXXXXX" {
        return failed(libc::EINVAL);
    }
    for _ in 0..TRIES_MAX {
        let mut dice = [0_u8; 6];
        unsafe { crate::clock::getrandom(dice.as_mut_ptr().cast(), dice.len(), 0) };
        for (to, it) in row.iter_mut().zip(dice) {
            *to = LETTERS[usize::from(it) % LETTERS.len()];
        }
        let made = make(template);
        if 0 <= made || last_error() != libc::EEXIST {
            return made;
        }
    }
    failed(libc::EEXIST)
}

/// See mkstemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkostemps(template: *mut c_char, rest: c_int, flags: c_int) -> c_int {
    stack::on_own(|| unsafe {
        with_chance(template, rest, |path| {
            let flags = flags | libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
            names::open(path, flags, 0o600)
        })
    })
}

/// See mkstemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkostemp(template: *mut c_char, flags: c_int) -> c_int {
    unsafe { mkostemps(template, 0, flags) }
}

/// See mkstemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkstemps(template: *mut c_char, rest: c_int) -> c_int {
    unsafe { mkostemps(template, rest, 0) }
}

/// See mkstemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkstemp(template: *mut c_char) -> c_int {
    unsafe { mkostemps(template, 0, 0) }
}

/// See mkstemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkstemp64(template: *mut c_char) -> c_int {
    unsafe { mkostemps(template, 0, 0) }
}

/// See mkdtemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdtemp(template: *mut c_char) -> *mut c_char {
    stack::on_own(|| {
        let made = unsafe { with_chance(template, 0, |path| names::mkdir(path, 0o700)) };
        if made < 0 { std::ptr::null_mut() } else { template }
    })
}

/// Whether nothing has that name: 0, or -1 and EEXIST.
fn must_be_new(path: *const c_char) -> c_int {
    let mut known: libc::stat = unsafe { std::mem::zeroed() };
    if unsafe { names::lstat(path, &raw mut known) } == 0 { failed(libc::EEXIST) } else { 0 }
}

/// See mktemp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mktemp(template: *mut c_char) -> *mut c_char {
    stack::on_own(|| unsafe {
        if with_chance(template, 0, must_be_new) < 0 {
            *template = 0;
        }
        template
    })
}

/// Where the C library puts files that are to be there for a while.
const FOLDER: &CStr = c"/tmp";

/// A new name in a folder that begins so.
fn new_name(folder: &CStr, begin: &[u8]) -> Option<CString> {
    let row = [folder.to_bytes(), b"/", begin, b"XXXXXX"].concat();
    let template = CString::new(row).ok()?.into_raw();
    let code = unsafe { with_chance(template, 0, must_be_new) };
    let name = unsafe { CString::from_raw(template) };
    (0 <= code).then_some(name)
}

/// See tmpnam(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tmpnam_r(to: *mut c_char) -> *mut c_char {
    stack::on_own(|| {
        let name = new_name(FOLDER, b"file").filter(|_| !to.is_null());
        let Some(name) = name else { return std::ptr::null_mut() };
        // 16 bytes, of the 20 that there are (L_tmpnam).
        unsafe { libc::strcpy(to, name.as_ptr()) }
    })
}

/// See tmpnam(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tmpnam(to: *mut c_char) -> *mut c_char {
    thread_local! {
        static KEPT: RefCell<[c_char; 20]> = const { RefCell::new([0; 20]) };
    }
    let to = if to.is_null() { KEPT.with(|it| it.as_ptr().cast()) } else { to };
    unsafe { tmpnam_r(to) }
}

/// See tempnam(3): the first folder that is there of `TMPDIR`'s, the program's and `/tmp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tempnam(folder: *const c_char, begin: *const c_char) -> *mut c_char {
    /// So many letters of `begin` are taken.
    const BEGIN_MAX: usize = 5;
    let name = stack::on_own(|| {
        let text = |it: *const c_char| (!it.is_null()).then(|| unsafe { CStr::from_ptr(it) });
        let is_there = |it: &&CStr| {
            let mut known: libc::stat = unsafe { std::mem::zeroed() };
            let code = unsafe { names::stat(it.as_ptr(), &raw mut known) };
            code == 0 && known.st_mode & libc::S_IFMT == libc::S_IFDIR
        };
        let told = text(unsafe { libc::getenv(c"TMPDIR".as_ptr()) });
        let folder = [told, text(folder)].into_iter().flatten().find(is_there).unwrap_or(FOLDER);
        let begin = text(begin).map_or(&b"file"[..], CStr::to_bytes);
        new_name(folder, &begin[..begin.len().min(BEGIN_MAX)])
    });
    // The program gives it back: it is of its heap.
    name.map_or(std::ptr::null_mut(), |it| unsafe { libc::strdup(it.as_ptr()) })
}
