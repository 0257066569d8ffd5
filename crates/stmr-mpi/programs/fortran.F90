! Calls that differ between the three ways in which Fortran reaches MPI: -DHEADER (mpif.h), -DMODULE
! (use mpi), or neither (use mpi_f08).  -DNO_INDEX leaves out MPI_Waitany, whose index MPICH 4.0.2
! counts from 0 in mpi_f08.
#if defined(HEADER) || defined(MODULE)
#define HANDLE(kind) integer
#else
#define HANDLE(kind) type(kind)
#endif
module kept
  ! What is called when something goes that is kept with a communicator, or is copied.
#if defined(HEADER)
  implicit none
  include 'mpif.h'
#elif defined(MODULE)
  use mpi
  implicit none
#else
  use mpi_f08
  implicit none
#endif
  integer(MPI_ADDRESS_KIND) :: gone = 0
contains
  subroutine copy(comm, key, extra, value, to, flag, code)
    HANDLE(MPI_Comm) :: comm
    integer :: key, code
    integer(MPI_ADDRESS_KIND) :: extra, value, to
    logical :: flag
    to = value + extra
    flag = .true.
    code = MPI_SUCCESS
  end subroutine
  subroutine forget(comm, key, value, extra, code)
    HANDLE(MPI_Comm) :: comm
    integer :: key, code, rank
    integer(MPI_ADDRESS_KIND) :: value, extra
    double precision :: own(1), all(1)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
    own = rank
    call MPI_Scan(own, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    gone = gone + value * (1 + int(all(1)))
    code = MPI_SUCCESS
  end subroutine
end module
program fortran
  use kept
#if !defined(HEADER) && !defined(MODULE)
  use mpi_f08
#endif
  implicit none
#if defined(HEADER) || defined(MODULE)
#define SOURCE_OF(row) row(MPI_SOURCE)
  integer :: state(MPI_STATUS_SIZE), states(MPI_STATUS_SIZE, 2)
#else
#define SOURCE_OF(row) row%MPI_SOURCE
  type(MPI_Status) :: state, states(2)
#endif
  HANDLE(MPI_Request) :: requests(2), fixed(2)
  HANDLE(MPI_Comm) :: half, ring
  HANDLE(MPI_Datatype) :: column
  HANDLE(MPI_Win) :: window
  integer(MPI_ADDRESS_KIND) :: bytes, place, told, extra
  integer :: rank, n, left, right, i, at, code, key, low, high, dims(1)
  logical :: flag, closed(1)
  double precision :: own(50), got(50), matrix(6, 6), total, sums(3), times

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, n, code)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  own = [(dble(rank * 100 + i), i = 1, 50)]
  total = 0
  do i = 1, 20
    call MPI_Irecv(got, 50, MPI_DOUBLE_PRECISION, left, i, MPI_COMM_WORLD, requests(1), code)
    call MPI_Isend(own, 50, MPI_DOUBLE_PRECISION, right, i, MPI_COMM_WORLD, requests(2), code)
#if defined(NO_INDEX)
    at = 1
    if (.true.) then
#else
    if (mod(i, 2) == 0) then
#endif
      call MPI_Waitall(2, requests, states, code)
    else
      call MPI_Waitany(2, requests, at, state, code)
      call MPI_Wait(requests(3 - at), state, code)
    end if
    own = own * 0.5d0 + got * 0.25d0
    call MPI_Allreduce(MPI_IN_PLACE, own, 3, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, code)
    total = total + sum(own)
  end do
  ! Persistent requests, and a status that tells who sent.
  call MPI_Recv_init(got, 50, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, fixed(1), code)
  call MPI_Send_init(own, 50, MPI_DOUBLE_PRECISION, right, 30, MPI_COMM_WORLD, fixed(2), code)
  do i = 1, 5
    call MPI_Startall(2, fixed, code)
    call MPI_Wait(fixed(1), state, code)
    if (SOURCE_OF(state) /= left) call MPI_Abort(MPI_COMM_WORLD, 3, code)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(fixed(2), flag, MPI_STATUS_IGNORE, code)
    end do
    total = total + got(i)
  end do
  call MPI_Request_free(fixed(1), code)
  call MPI_Request_free(fixed(2), code)
  ! A column of a matrix, and communicators made from others.
  matrix = rank
  call MPI_Type_vector(6, 1, 6, MPI_DOUBLE_PRECISION, column, code)
  call MPI_Type_commit(column, code)
  call MPI_Sendrecv(matrix(2, 1), 1, column, right, 40, matrix(4, 1), 1, column, left, 40, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  call MPI_Type_free(column, code)
  total = total + sum(matrix)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, code)
  call MPI_Comm_rank(half, key, code)
  sums = [total, dble(key), 1d0]
  call MPI_Reduce(sums, got, 3, MPI_DOUBLE_PRECISION, MPI_SUM, 0, half, code)
  if (key == 0) total = total + got(1)
  call MPI_Comm_free(half, code)
  dims = n
  closed = .false.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, closed, .false., ring, code)
  call MPI_Cart_shift(ring, 0, 1, low, high, code)
  times = MPI_Wtime()
  call MPI_Sendrecv(times, 1, MPI_DOUBLE_PRECISION, high, 50, got, 1, MPI_DOUBLE_PRECISION, low, 50, &
                    ring, state, code)
  call MPI_Comm_free(ring, code)
  ! A window of the matrix.
  bytes = 8 * 36
  place = 6
  call MPI_Win_create(matrix, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, window, code)
  call MPI_Win_fence(0, window, code)
  call MPI_Put(own, 6, MPI_DOUBLE_PRECISION, right, place, 6, MPI_DOUBLE_PRECISION, window, code)
  call MPI_Win_fence(0, window, code)
  call MPI_Get(got, 1, MPI_DOUBLE_PRECISION, left, place, 1, MPI_DOUBLE_PRECISION, window, code)
  call MPI_Win_fence(0, window, code)
  call MPI_Win_get_attr(window, MPI_WIN_SIZE, told, flag, code)
  if (.not. flag .or. told /= bytes) call MPI_Abort(MPI_COMM_WORLD, 4, code)
  call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, told, flag, code)
  if (.not. flag .or. told /= 8) call MPI_Abort(MPI_COMM_WORLD, 5, code)
  total = total + sum(matrix) + got(1)
  call MPI_Win_free(window, code)
  ! What is kept with communicators.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, told, flag, code)
  if (.not. flag .or. told < 32767) call MPI_Abort(MPI_COMM_WORLD, 6, code)
  extra = 10
  call MPI_Comm_create_keyval(copy, forget, key, extra, code)
  place = rank + 1
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, place, code)
  call MPI_Comm_dup(MPI_COMM_WORLD, ring, code)
  call MPI_Comm_get_attr(ring, key, told, flag, code)
  if (.not. flag .or. told /= rank + 11) call MPI_Abort(MPI_COMM_WORLD, 7, code)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, code)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, told, flag, code)
  if (flag) call MPI_Abort(MPI_COMM_WORLD, 8, code)
  call MPI_Comm_free(ring, code)
  call MPI_Comm_free_keyval(key, code)
  if (gone /= (2 * rank + 12) * (1 + rank * (rank + 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 9, code)
  total = total + gone
  call MPI_Gather(total, 1, MPI_DOUBLE_PRECISION, got, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, code)
  if (rank == 0) print '(a, 8f20.8)', 'fortran:', got(1:min(n, 8))
  call MPI_Finalize(code)
end program
