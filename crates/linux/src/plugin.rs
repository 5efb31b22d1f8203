//! Page policies in shared libraries, as `examples/user-policy/nodewise_policy.h` declares them.
//!
//! A library runs inside this process: one that crashes takes it along, and so the user must trust
//! it as much as nodewise itself.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// The interface version of the header.
const ABI: u32 = 1;

/// A library that could not be used: one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}", path = path.display())]
pub struct PluginError {
    path: PathBuf,
    what: String,
}

impl PluginError {
    /// What is wrong, without the path.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.what
    }
}

/// Accesses of one thread to one page; mirrors `nodewise_cell`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Cell {
    /// Number of load instructions.
    pub reads: u64,
    /// Number of store instructions.
    pub writes: u64,
    /// Cache lines of traffic, saturating.
    pub lines: u32,
    /// Number of the accessing thread.
    pub thread: u32,
}

/// The input of a library's policy; the header documents each field.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the header's words
pub struct Input<'a> {
    pub page_size: u64,
    pub page: &'a [u64],
    pub offsets: &'a [u64],
    pub cells: &'a [Cell],
    pub first_touch: &'a [u32],
    pub thread_node: &'a [u32],
    pub latency: &'a [f64],
    pub bandwidth: &'a [f64],
}

/// The C struct `nodewise_histogram` of the plug-in interface.
#[repr(C)]
struct RawInput {
    nodes: u32,
    threads: u32,
    page_size: u64,
    pages: u64,
    page: *const u64,
    offsets: *const u64,
    cells: *const Cell,
    first_touch: *const u32,
    thread_node: *const u32,
    latency: *const f64,
    bandwidth: *const f64,
}

type AbiFunction = extern "C" fn() -> u32;
type PolicyFunction = extern "C" fn(*const RawInput, *mut u32) -> c_int;

/// A loaded policy; the library stays loaded until the process ends.
#[derive(Clone, Debug)]
pub struct Plugin {
    path: PathBuf,
    policy: PolicyFunction,
}

impl Plugin {
    /// Loads the library at `path`, which must contain a slash or lie in the current folder.
    ///
    /// # Errors
    /// It cannot be loaded, is no policy, or is one of another interface version.
    pub fn load(path: &Path) -> Result<Self, PluginError> {
        let refuse = |what: String| PluginError {
            path: path.to_owned(),
            what,
        };
        // Without a slash dlopen would search the library path instead.
        let name = Path::new(".").join(path);
        let name = CString::new(name.as_os_str().as_encoded_bytes()).map_err(|e| refuse(e.to_string()))?;
        // SAFETY: `name` ends with NUL. The library's constructors run, which the user asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(refuse(format!("cannot be loaded: {}", last_error())));
        }
        let symbol = |name: &CStr| find(handle, name).map_err(refuse);
        let (abi, policy) = (symbol(c"nodewise_policy_abi")?, symbol(c"nodewise_policy")?);
        // SAFETY: the header gives the function of this name this type.
        let abi = unsafe { std::mem::transmute::<*mut c_void, AbiFunction>(abi) };
        match abi() {
            ABI => {}
            other => {
                let what = format!(
                    "built for policy interface {other}, this is {ABI}; rebuild it with the current header"
                );
                return Err(refuse(what));
            }
        }
        // SAFETY: likewise, for the version just checked.
        let policy = unsafe { std::mem::transmute::<*mut c_void, PolicyFunction>(policy) };
        Ok(Self {
            path: path.to_owned(),
            policy,
        })
    }

    /// Asks the library for a node for each page. The nodes are not checked.
    ///
    /// # Errors
    /// The library reports failure.
    ///
    /// # Panics
    /// If the slices of `input` do not have the lengths that the header gives them.
    pub fn place(&self, input: &Input<'_>) -> Result<Vec<u32>, PluginError> {
        let (pages, nodes) = (input.page.len(), input.bandwidth.len());
        assert_eq!(input.offsets.len(), pages + 1);
        assert_eq!(input.offsets[pages], input.cells.len() as u64);
        assert_eq!(input.first_touch.len(), pages);
        assert_eq!(input.latency.len(), nodes * nodes);
        let raw = RawInput {
            nodes: nodes as u32,
            threads: input.thread_node.len() as u32,
            page_size: input.page_size,
            pages: pages as u64,
            page: input.page.as_ptr(),
            offsets: input.offsets.as_ptr(),
            cells: input.cells.as_ptr(),
            first_touch: input.first_touch.as_ptr(),
            thread_node: input.thread_node.as_ptr(),
            latency: input.latency.as_ptr(),
            bandwidth: input.bandwidth.as_ptr(),
        };
        let mut out = vec![u32::MAX; pages];
        match (self.policy)(&raw, out.as_mut_ptr()) {
            0 => Ok(out),
            status => Err(PluginError {
                path: self.path.clone(),
                what: format!("the policy failed with status {status}"),
            }),
        }
    }
}

fn find(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: `handle` came from dlopen and is never closed; `name` ends with NUL.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if symbol.is_null() {
        Err(format!(
            "exports no `{}`: not a nodewise policy",
            name.to_string_lossy()
        ))
    } else {
        Ok(symbol)
    }
}

fn last_error() -> String {
    // SAFETY: dlerror gives NULL or a string valid until this thread's next dl call.
    let message: *const c_char = unsafe { libc::dlerror() };
    if message.is_null() {
        return "unknown reason".into();
    }
    // SAFETY: as above; not NULL.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .replace('\n', " ")
}
