//! What the C library prints by ways of its own that no other library can stand in: to a
//! descriptor, and in wide characters to a stream of ours.  And whether that is a terminal.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;

use libc::{FILE, size_t, wchar_t};

use crate::descriptors;
use crate::files::{self, Identity};
use crate::input;
use crate::stack;
use crate::streams::{is_ours, next};
use crate::told::told;

/// No character (WEOF of wchar.h).
const WEOF: u32 = u32::MAX;

/// The longest character in bytes (MB_LEN_MAX).
const CHARACTER_MAX: usize = 16;

/// The arguments behind the named ones, as the C library's `va_list` passes them.
type Arguments = *mut c_void;

unsafe extern "C" {
    fn vasprintf(to: *mut *mut c_char, format: *const c_char, arguments: Arguments) -> c_int;
    fn open_wmemstream(to: *mut *mut wchar_t, length: *mut size_t) -> *mut FILE;
    fn wcrtomb(to: *mut c_char, character: wchar_t, state: *mut c_void) -> size_t;
}

/// What the program prints to, where it takes that for a terminal.
static TERMINAL: OnceLock<Option<Identity>> = OnceLock::new();

/// Learns what the program prints to, before it prints elsewhere.
pub(crate) fn find_terminal() {
    let has_terminal = told().is_some_and(|it| it.has_terminal);
    let found = if has_terminal { files::identity_of_open(libc::STDOUT_FILENO) } else { None };
    TERMINAL.get_or_init(|| found);
}

/// Whether that is what the program takes for a terminal.
fn is_terminal(fd: c_int) -> bool {
    let terminal = TERMINAL.get().copied().flatten();
    terminal.is_some() && files::identity_of_open(fd) == terminal
}

/// See isatty(3).  Where the launcher gives its processes a terminal to print to, as Open MPI's
/// does, programs print by lines, and see that they may.
#[unsafe(no_mangle)]
pub extern "C" fn isatty(fd: c_int) -> c_int {
    stack::on_own(|| {
        if is_terminal(fd) {
            return 1;
        }
        type Function = unsafe extern "C" fn(c_int) -> c_int;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"isatty")) };
        unsafe { real(fd) }
    })
}

/// See ioctl(2).  The terminal that Open MPI gives a process has no size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int {
    stack::on_own(|| {
        if request == libc::TIOCGWINSZ && argument != 0 && is_terminal(fd) {
            unsafe { *(argument as *mut libc::winsize) = std::mem::zeroed() };
            return 0;
        }
        if request == libc::FIONREAD && argument != 0 && input::is_shared(fd) {
            return input::how_many(fd, argument as *mut c_int);
        }
        unsafe { libc::syscall(libc::SYS_ioctl, fd, request, argument) as c_int }
    })
}

/// See vdprintf(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdprintf(fd: c_int, format: *const c_char, arguments: Arguments) -> c_int {
    stack::on_own(|| {
        let mut text = std::ptr::null_mut();
        let length = unsafe { vasprintf(&raw mut text, format, arguments) };
        let mut done = 0;
        while done < length {
            let rest = (length - done) as size_t;
            let n = unsafe { descriptors::write(fd, text.add(done as usize).cast(), rest) };
            if n <= 0 {
                break;
            }
            done += n as c_int;
        }
        if 0 <= length {
            unsafe { libc::free(text.cast()) };
        }
        if done < length { -1 } else { length }
    })
}

/// The same of a program that was built with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    _flag: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    unsafe { vdprintf(fd, format, arguments) }
}

/// Writes wide characters to a stream of ours, as bytes of the program's locale; how many were.
unsafe fn put_wide(stream: *mut FILE, characters: &[wchar_t]) -> usize {
    let put = |character: &&wchar_t| {
        let mut bytes = [0 as c_char; CHARACTER_MAX];
        let length = unsafe { wcrtomb(bytes.as_mut_ptr(), **character, std::ptr::null_mut()) };
        length <= CHARACTER_MAX
            && unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, length, stream) } == length
    };
    characters.iter().take_while(put).count()
}

/// See fputwc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fputwc(character: wchar_t, stream: *mut FILE) -> u32 {
    stack::on_own(|| {
        if is_ours(stream) {
            let done = unsafe { put_wide(stream, &[character]) };
            return if done == 1 { character as u32 } else { WEOF };
        }
        type Function = unsafe extern "C" fn(wchar_t, *mut FILE) -> u32;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fputwc")) };
        unsafe { real(character, stream) }
    })
}

/// See fputwc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn putwc(character: wchar_t, stream: *mut FILE) -> u32 {
    unsafe { fputwc(character, stream) }
}

/// See fputwc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fputwc_unlocked(character: wchar_t, stream: *mut FILE) -> u32 {
    unsafe { fputwc(character, stream) }
}

/// See fputwc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn putwc_unlocked(character: wchar_t, stream: *mut FILE) -> u32 {
    unsafe { fputwc(character, stream) }
}

/// See fputws(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fputws(text: *const wchar_t, stream: *mut FILE) -> c_int {
    stack::on_own(|| {
        if is_ours(stream) {
            let text = unsafe { std::slice::from_raw_parts(text, libc::wcslen(text)) };
            return if unsafe { put_wide(stream, text) } == text.len() { 1 } else { -1 };
        }
        type Function = unsafe extern "C" fn(*const wchar_t, *mut FILE) -> c_int;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fputws")) };
        unsafe { real(text, stream) }
    })
}

/// See fputws(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fputws_unlocked(text: *const wchar_t, stream: *mut FILE) -> c_int {
    unsafe { fputws(text, stream) }
}

/// See vfwprintf(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfwprintf(
    stream: *mut FILE,
    format: *const wchar_t,
    arguments: Arguments,
) -> c_int {
    stack::on_own(|| {
        type Function = unsafe extern "C" fn(*mut FILE, *const wchar_t, Arguments) -> c_int;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"vfwprintf")) };
        if !is_ours(stream) {
            return unsafe { real(stream, format, arguments) };
        }
        let (mut text, mut length) = (std::ptr::null_mut(), 0);
        let memory = unsafe { open_wmemstream(&raw mut text, &raw mut length) };
        if memory.is_null() {
            return -1;
        }
        let printed = unsafe { real(memory, format, arguments) };
        unsafe { libc::fclose(memory) };
        let characters = unsafe { std::slice::from_raw_parts(text, length) };
        let done = unsafe { put_wide(stream, characters) };
        unsafe { libc::free(text.cast()) };
        if done < length { -1 } else { printed }
    })
}

/// The same of a program that was built with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vfwprintf_chk(
    stream: *mut FILE,
    _flag: c_int,
    format: *const wchar_t,
    arguments: Arguments,
) -> c_int {
    unsafe { vfwprintf(stream, format, arguments) }
}

/// A function with any number of arguments, `$named` of them with names, that hands the rest to
/// one that takes them as a list (System V ABI of x86-64, §3.5.7).
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $named:literal, $list:ident, $put:literal, $what:literal) => {
        #[doc = $what]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "sub rsp, 216",
                // Where the registers' arguments lie, from rsp + 32 on.
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                // The list: how much of them has names, those on the stack, those of registers.
                "mov dword ptr [rsp], {named} * 8",
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                $put,
                "call {list}",
                "add rsp, 216",
                "ret",
                named = const $named,
                list = sym $list,
            )
        }
    };
}

#[cfg(target_arch = "x86_64")]
variadic!(dprintf, 2, vdprintf, "mov rdx, rsp", "See dprintf(3).");
#[cfg(target_arch = "x86_64")]
variadic!(__dprintf_chk, 3, __vdprintf_chk, "mov rcx, rsp", "See [`__vdprintf_chk`].");
#[cfg(target_arch = "x86_64")]
variadic!(fwprintf, 2, vfwprintf, "mov rdx, rsp", "See fwprintf(3).");
#[cfg(target_arch = "x86_64")]
variadic!(__fwprintf_chk, 3, __vfwprintf_chk, "mov rcx, rsp", "See [`__vfwprintf_chk`].");
