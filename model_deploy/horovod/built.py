"""What Horovod's programs ask of its build: here TensorFlow's own collective ops do the work."""


def mpi_threads_supported() -> bool:
    """Whether MPI runs, and in several threads: there is no MPI."""
    return False


def mpi_enabled() -> bool:
    """Whether MPI is used: it is not."""
    return False


def mpi_built() -> bool:
    """Whether there is MPI: there is none."""
    return False


def gloo_enabled() -> bool:
    """Whether Gloo is used: it is not."""
    return False


def gloo_built() -> bool:
    """Whether there is Gloo: there is none."""
    return False


def nccl_built() -> bool:
    """Whether NCCL adds up: between processes TensorFlow's rings do, through gRPC."""
    return False


def ddl_built() -> bool:
    """Whether there is DDL: there is none."""
    return False


def ccl_built() -> bool:
    """Whether there is oneCCL: there is none."""
    return False


def cuda_built() -> bool:
    """Whether sums are made on GPUs: on CPUs, unless `device_dense` says otherwise."""
    return False


def rocm_built() -> bool:
    """Whether sums are made on GPUs of AMD: they are not."""
    return False
