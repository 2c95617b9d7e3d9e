//! The calls of MPI that the transport needs, each with its error as a value.

use ::mpi::ffi;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use oflow_base::{Error, Result};

/// The kinds of messages. Of one kind they arrive in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum MessageKind {
    Head = 1,
    Data = 2,
    Reject = 3,
    Left = 4,
}

/// A communicator of our own, so that no message of the program's can meet ours.
#[derive(Clone, Copy)]
pub(super) struct World(ffi::MPI_Comm);

/// A message that is being sent; its bytes must stay where they are until it is done.
pub(super) struct Sending(ffi::MPI_Request);

/// A message that has been matched and not yet taken.
pub(super) struct Matched {
    message: ffi::MPI_Message,
    pub(super) len: usize,
}

fn check(code: c_int, what: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::comm(format!("MPI: {what} failed with error {code}"))) }
}

fn count(len: usize) -> Result<c_int> {
    c_int::try_from(len).map_err(|_| Error::comm(format!("MPI: a message of {len} bytes is too long")))
}

impl World {
    /// A copy of MPI's world, which returns errors instead of ending the process. MPI must have been initialised.
    pub(super) fn new() -> Result<World> {
        // SAFETY: MPI is initialised; the handles are written before they are read.
        unsafe {
            let mut comm = ffi::RSMPI_COMM_NULL;
            check(ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm), "MPI_Comm_dup")?;
            check(ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN), "MPI_Comm_set_errhandler")?;
            Ok(World(comm))
        }
    }

    /// This rank, and the number of ranks.
    pub(super) fn place(self) -> Result<(usize, usize)> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a live communicator and two integers to write to.
        unsafe {
            check(ffi::MPI_Comm_rank(self.0, &mut rank), "MPI_Comm_rank")?;
            check(ffi::MPI_Comm_size(self.0, &mut size), "MPI_Comm_size")?;
        }
        Ok((rank as usize, size as usize))
    }

    /// Number of ranks on this host. Called by all ranks together.
    pub(super) fn ranks_here(self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: a live communicator; the new one is freed after its size has been read.
        unsafe {
            let mut here = ffi::RSMPI_COMM_NULL;
            let shared = ffi::RSMPI_COMM_TYPE_SHARED;
            let split = ffi::MPI_Comm_split_type(self.0, shared, 0, ffi::RSMPI_INFO_NULL, &mut here);
            check(split, "MPI_Comm_split_type")?;
            check(ffi::MPI_Comm_size(here, &mut size), "MPI_Comm_size")?;
            check(ffi::MPI_Comm_free(&mut here), "MPI_Comm_free")?;
        }
        Ok(size as usize)
    }

    /// Begins to send bytes.
    ///
    /// # Safety
    /// The bytes are valid for reads and not written until the sending is done.
    pub(super) unsafe fn send(self, data: *const u8, len: usize, to: usize, kind: MessageKind) -> Result<Sending> {
        let len = count(len)?;
        // SAFETY: by the contract of this function; the request is written before it is read.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (data, bytes, to) = (data.cast::<c_void>(), ffi::RSMPI_UINT8_T, to as c_int);
            // A header is done when its reader has taken it: that bounds how far we run ahead.
            let code = match kind {
                MessageKind::Head => ffi::MPI_Issend(data, len, bytes, to, kind as c_int, self.0, &mut request),
                _ => ffi::MPI_Isend(data, len, bytes, to, kind as c_int, self.0, &mut request),
            };
            check(code, "a send")?;
            Ok(Sending(request))
        }
    }

    /// Sends a message without bytes for which no rank waits.
    pub(super) fn tell(self, to: usize, kind: MessageKind) -> Result<()> {
        // SAFETY: a message of no bytes reads nothing, so its request may be given up at once.
        unsafe {
            let mut sending = self.send(NonNull::<u8>::dangling().as_ptr(), 0, to, kind)?;
            check(ffi::MPI_Request_free(&mut sending.0), "MPI_Request_free")
        }
    }

    /// The next message of that kind from a rank, if one is there.
    pub(super) fn look(self, from: usize, kind: MessageKind) -> Result<Option<Matched>> {
        // SAFETY: a live communicator; flag, message and status are written before they are read.
        unsafe {
            let (mut flag, mut message) = (0, ffi::RSMPI_MESSAGE_NULL);
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            let code = ffi::MPI_Improbe(from as c_int, kind as c_int, self.0, &mut flag, &mut message, &mut status);
            check(code, "MPI_Improbe")?;
            if flag == 0 {
                return Ok(None);
            }
            let mut len = 0;
            check(ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut len), "MPI_Get_count")?;
            let len = usize::try_from(len).map_err(|_| Error::comm("MPI: a message has no length"))?;
            Ok(Some(Matched { message, len }))
        }
    }

    /// Whether a message of that kind is there, which stays.
    pub(super) fn has(self, from: usize, kind: MessageKind) -> Result<bool> {
        // SAFETY: a live communicator; flag and status are written before they are read.
        unsafe {
            let mut flag = 0;
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            let code = ffi::MPI_Iprobe(from as c_int, kind as c_int, self.0, &mut flag, &mut status);
            check(code, "MPI_Iprobe")?;
            Ok(flag != 0)
        }
    }
}

impl Matched {
    /// Takes the message into a buffer, which has at least its length.
    pub(super) fn take(mut self, to: &mut [u8]) -> Result<()> {
        if to.len() < self.len {
            return Err(Error::comm(format!("MPI: a message of {} bytes for a buffer of {}", self.len, to.len())));
        }
        let len = count(self.len)?;
        let data = to.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer has room for the matched message, which is taken once.
        let code =
            unsafe { ffi::MPI_Mrecv(data, len, ffi::RSMPI_UINT8_T, &mut self.message, ffi::RSMPI_STATUS_IGNORE) };
        check(code, "MPI_Mrecv")
    }
}

impl Sending {
    /// Whether the message has gone.
    pub(super) fn is_done(&mut self) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: a request of ours; MPI sets it to null when it is done, and testing that again says done.
        let code = unsafe { ffi::MPI_Test(&mut self.0, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        check(code, "MPI_Test")?;
        Ok(flag != 0)
    }
}
