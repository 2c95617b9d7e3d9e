//! `oflow.dtype`, `oflow.device`, `oflow.placement`, `oflow.sbp` and `oflow.Generator`.

use crate::errors::{OrRaise, Unfit};
use crate::phrases::in_python;
use crate::signature::{DTYPE_NAMES, dtype_name};
use oflow::GeneratorState;
use oflow::kernels::ReduceOp;
use oflow::sbp::NdSbp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Further names.
const DTYPE_ALIASES: [(&str, &str); 11] = [
    ("half", "float16"),
    ("float", "float32"),
    ("double", "float64"),
    ("cfloat", "complex64"),
    ("cdouble", "complex128"),
    ("short", "int16"),
    ("int", "int32"),
    ("long", "int64"),
    ("char", "int8"),
    ("byte", "uint8"),
    ("bool_", "bool"),
];

/// The type of the elements of a tensor: ``oflow.float32``, ``oflow.int64`` and so on.
#[pyclass(frozen, name = "dtype", module = "oflow")]
pub struct DType {
    inner: oflow::DType,
}

/// The object of a dtype. There is one of each built-in dtype.
pub fn dtype_object(py: Python<'_>, d: oflow::DType) -> PyResult<Py<DType>> {
    static BUILT_IN: PyOnceLock<Vec<Py<DType>>> = PyOnceLock::new();
    let all = BUILT_IN.get_or_try_init(py, || {
        oflow::DType::BUILTIN.iter().map(|d| Py::new(py, DType { inner: *d })).collect::<PyResult<Vec<_>>>()
    })?;
    match oflow::DType::BUILTIN.iter().position(|b| *b == d) {
        Some(i) => Ok(all[i].clone_ref(py)),
        None => Py::new(py, DType { inner: d }),
    }
}

/// A dtype from its object, a name, or a type of NumPy or Python.
pub fn dtype_of(o: &Bound<'_, PyAny>) -> Result<oflow::DType, Unfit> {
    if let Ok(d) = o.cast::<DType>() {
        return Ok(d.get().inner);
    }
    let name = if let Ok(s) = o.cast::<PyString>() {
        s.to_str()?.to_string()
    } else if let Ok(class) = o.cast::<PyType>() {
        let py = o.py();
        if class.is(py.get_type::<PyFloat>()) {
            return Ok(oflow::DType::F32);
        } else if class.is(py.get_type::<PyInt>()) {
            return Ok(oflow::DType::I64);
        } else if class.is(py.get_type::<PyBool>()) {
            return Ok(oflow::DType::Bool);
        }
        // `numpy.float32` is a class.
        if class.module()?.to_str()? != "numpy" {
            return Err(Unfit::Type);
        }
        class.name()?.to_string()
    } else if o.get_type().module()?.to_str()?.starts_with("numpy") && o.hasattr("itemsize")? {
        o.getattr("name")?.extract::<String>()?
    } else {
        return Err(Unfit::Type);
    };
    dtype_named(&name).ok_or_else(|| {
        Unfit::Text(format!(
            "unknown dtype '{name}'; there are {}, and quantised ones such as 'qint8(scale=0.5, zero=3)'",
            DTYPE_NAMES.join(", ")
        ))
    })
}

/// The dtype of that name.
pub fn dtype_named(name: &str) -> Option<oflow::DType> {
    let name = name.strip_prefix("oflow.").unwrap_or(name);
    let name = DTYPE_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, of)| of);
    match DTYPE_NAMES.iter().position(|n| *n == name) {
        Some(i) => Some(oflow::DType::BUILTIN[i]),
        None => name.parse().ok(),
    }
}

/// Adds `float32` and the others to the module.
pub fn add_dtypes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names = DTYPE_NAMES.iter().map(|n| (*n, *n)).chain(DTYPE_ALIASES);
    for (name, of) in names.filter(|(name, _)| *name != "bool_") {
        if let Some(d) = dtype_named(of) {
            module.add(name, dtype_object(module.py(), d)?)?;
        }
    }
    Ok(())
}

#[pymethods]
impl DType {
    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.inner.size()
    }
    /// Whether it is a floating point type.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.inner.is_float() || self.inner.is_small_float()
    }
    /// Whether it is a type of complex numbers.
    #[getter]
    fn is_complex(&self) -> bool {
        self.inner.is_complex()
    }
    /// The name: ``float32``.
    #[getter]
    fn name(&self) -> String {
        dtype_name(self.inner).trim_start_matches("oflow.").to_string()
    }
    fn __repr__(&self) -> String {
        dtype_name(self.inner)
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<DType>().is_ok_and(|d| d.get().inner == self.inner)
    }
    fn __hash__(&self) -> u64 {
        self.inner.fingerprint()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("oflow")?.getattr("dtype")?, (self.name(),)))
    }
    #[new]
    fn new(py: Python<'_>, of: &Bound<'_, PyAny>) -> PyResult<Py<DType>> {
        dtype_object(py, dtype_of(of).map_err(|no| raised(no, of, "a dtype"))?)
    }
}

/// The exception for an object of the wrong type.
pub fn raised(no: Unfit, o: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    match no {
        Unfit::Raise(e) => e,
        Unfit::Text(text) => PyValueError::new_err(text),
        Unfit::Type => {
            let found = o.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
            PyTypeError::new_err(format!("{found} is not {wanted}"))
        }
    }
}

/// A kind of device: ``oflow.device("cpu")``.
#[pyclass(frozen, name = "device", module = "oflow")]
pub struct Device {
    inner: oflow::placement::Device,
}

impl Device {
    /// The object of a device.
    pub fn of(inner: oflow::placement::Device) -> Device {
        Device { inner }
    }
}

/// A device from its object or name.
pub fn device_of(o: &Bound<'_, PyAny>) -> Result<oflow::placement::Device, Unfit> {
    if let Ok(d) = o.cast::<Device>() {
        return Ok(d.get().inner);
    }
    let name = o.cast::<PyString>().map_err(|_| Unfit::Type)?.to_str()?;
    name.parse().map_err(|e: oflow::Error| Unfit::Text(in_python(e.message())))
}

#[pymethods]
impl Device {
    #[new]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Device> {
        Ok(Device { inner: device_of(of).map_err(|no| raised(no, of, "a device"))? })
    }
    /// The name: ``cpu``.
    #[getter(r#type)]
    fn kind(&self) -> &'static str {
        self.inner.name()
    }
    fn __repr__(&self) -> String {
        format!("device(type='{}')", self.inner)
    }
    fn __str__(&self) -> &'static str {
        self.inner.name()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Device>().is_ok_and(|d| d.get().inner == self.inner)
    }
    fn __hash__(&self) -> u64 {
        self.inner.key()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("oflow")?.getattr("device")?, (self.inner.name(),)))
    }
}

/// A kind of device and a mesh of ranks.
///
/// ``oflow.placement("cpu", ranks=[0, 1])``; a nested list is a mesh of as many axes: ``ranks=[[0, 1], [2, 3]]``. ``mesh`` names the
/// axes: ``oflow.placement.all("cpu").mesh(dp=2, tp=2)``.
#[pyclass(frozen, name = "placement", module = "oflow")]
pub struct Placement {
    inner: oflow::placement::Placement,
}

impl Placement {
    /// The object of a placement.
    pub fn of(inner: oflow::placement::Placement) -> Placement {
        Placement { inner }
    }
}

/// A placement from its object.
pub fn placement_of(o: &Bound<'_, PyAny>) -> Result<oflow::placement::Placement, Unfit> {
    Ok(o.cast::<Placement>().map_err(|_| Unfit::Type)?.get().inner.clone())
}

/// Ranks of a nested list, row-major, and the sizes of the list.
fn ranks_of(o: &Bound<'_, PyAny>, ranks: &mut Vec<usize>) -> PyResult<Vec<usize>> {
    if o.is_instance_of::<PyInt>() {
        ranks.push(o.extract::<usize>().map_err(|_| PyValueError::new_err(format!("{o} is not a rank")))?);
        return Ok(vec![]);
    }
    if o.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("ranks are a list of ints"));
    }
    let (mut count, mut inner) = (0, None);
    for member in o.try_iter()? {
        let sizes = ranks_of(&member?, ranks)?;
        if inner.get_or_insert_with(|| sizes.clone()) != &sizes {
            return Err(PyValueError::new_err("the lists of ranks have different lengths"));
        }
        count += 1;
    }
    Ok([vec![count], inner.unwrap_or_default()].concat())
}

#[pymethods]
impl Placement {
    #[new]
    #[pyo3(signature = (r#type, ranks, mesh=None))]
    fn new(
        py: Python<'_>,
        r#type: &Bound<'_, PyAny>,
        ranks: &Bound<'_, PyAny>,
        mesh: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Placement> {
        let device = device_of(r#type).map_err(|no| raised(no, r#type, "a device"))?;
        let mut all = vec![];
        let dims = ranks_of(ranks, &mut all)?;
        let dims = if dims.is_empty() { vec![1] } else { dims };
        let made = Placement { inner: oflow::placement::Placement::new(device, &all, &dims).or_raise(py)? };
        if mesh.is_some() { made.mesh(py, mesh) } else { Ok(made) }
    }
    /// All ranks of the world, as a mesh of one axis.
    #[staticmethod]
    fn all(py: Python<'_>, r#type: &Bound<'_, PyAny>) -> PyResult<Placement> {
        crate::context::enter(py)?;
        let device = device_of(r#type).map_err(|no| raised(no, r#type, "a device"))?;
        oflow::placement::Placement::all(device).or_raise(py).map(Placement::of)
    }
    /// The same ranks as a mesh with named axes, outermost first: ``p.mesh(dp=2, tp=4)``.
    #[pyo3(signature = (**axes))]
    fn mesh(&self, py: Python<'_>, axes: Option<&Bound<'_, PyDict>>) -> PyResult<Placement> {
        let mut all: Vec<(String, usize)> = vec![];
        for (name, size) in axes.into_iter().flatten() {
            all.push((name.extract()?, size.extract()?));
        }
        let axes: Vec<(&str, usize)> = all.iter().map(|(n, s)| (n.as_str(), *s)).collect();
        self.inner.mesh(&axes).or_raise(py).map(Placement::of)
    }
    /// The slice of the mesh at ``index`` of an axis, which is given by name or number: a placement with one axis fewer.
    fn slice(&self, py: Python<'_>, axis: &Bound<'_, PyAny>, index: usize) -> PyResult<Placement> {
        let sliced = match axis.extract::<usize>() {
            Ok(axis) => self.inner.slice(axis, index),
            Err(_) => self.inner.slice(axis.extract::<String>()?.as_str(), index),
        };
        sliced.or_raise(py).map(Placement::of)
    }
    /// The same mesh on another kind of device.
    fn on(&self, r#type: &Bound<'_, PyAny>) -> PyResult<Placement> {
        let device = device_of(r#type).map_err(|no| raised(no, r#type, "a device"))?;
        Ok(Placement { inner: self.inner.on(device) })
    }
    /// The ranks, row-major over the mesh.
    #[getter]
    fn ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.inner.ranks())
    }
    /// The sizes of the mesh, outermost axis first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.dims())
    }
    /// The names of the mesh axes; None for an axis without a name.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.names().iter().map(|n| n.as_deref()))
    }
    /// The name of the device.
    #[getter(r#type)]
    fn kind(&self) -> &'static str {
        self.inner.device().name()
    }
    fn __len__(&self) -> usize {
        self.inner.len()
    }
    fn __repr__(&self) -> String {
        format!("oflow.placement({})", self.inner)
    }
    /// HTML for notebooks: a picture of the mesh.
    fn _repr_html_(&self) -> String {
        crate::display::placement(&self.inner)
    }
    fn __str__(&self) -> String {
        self.inner.to_string()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Placement>().is_ok_and(|p| p.get().inner == self.inner)
    }
    fn __hash__(&self) -> u64 {
        self.inner.id()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let parts = [
            self.kind().into_pyobject(py)?.into_any(),
            self.ranks(py)?.into_any(),
            self.shape(py)?.into_any(),
            self.names(py)?.into_any(),
        ];
        Ok((py.import("oflow._tensor")?.getattr("_placement")?, PyTuple::new(py, parts)?))
    }
}

/// How a tensor lies along one axis of a mesh: ``oflow.sbp.split(0)``, ``oflow.sbp.broadcast``, ``oflow.sbp.partial_sum``.
#[pyclass(frozen, module = "oflow.sbp")]
pub struct Sbp {
    inner: oflow::sbp::Sbp,
}

/// An nd-SBP: one SBP, a tuple or list of them, or text.
pub fn sbp_of(o: &Bound<'_, PyAny>) -> Result<NdSbp, Unfit> {
    if let Ok(s) = o.cast::<Sbp>() {
        return Ok(NdSbp::new(&[s.get().inner]));
    }
    let said = |e: oflow::Error| Unfit::Text(in_python(e.message()));
    if let Ok(text) = o.cast::<PyString>() {
        return text.to_str()?.parse().map_err(said);
    }
    if !(o.is_instance_of::<PyTuple>() || o.is_instance_of::<PyList>()) {
        return Err(Unfit::Type);
    }
    let mut all = vec![];
    for member in o.try_iter()? {
        let member = member?;
        all.push(match (member.cast::<Sbp>(), member.cast::<PyString>()) {
            (Ok(s), _) => s.get().inner,
            (_, Ok(text)) => text.to_str()?.parse().map_err(said)?,
            _ => return Err(Unfit::Type),
        });
    }
    Ok(NdSbp::new(&all))
}

/// An nd-SBP as a tuple.
pub fn sbp_tuple(py: Python<'_>, s: &NdSbp) -> PyResult<Py<PyAny>> {
    let all = s.iter().map(|s| Py::new(py, Sbp { inner: *s })).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, all)?.into_any().unbind())
}

/// An nd-SBP as a tuple with one SBP for each mesh axis.
#[pyfunction]
pub fn _sbps(py: Python<'_>, sbp: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    sbp_tuple(py, &sbp_of(sbp).map_err(|no| raised(no, sbp, "an sbp or a tuple of them"))?)
}

#[pymethods]
impl Sbp {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Sbp> {
        Ok(Sbp { inner: text.parse().or_raise(py)? })
    }
    /// Itself: OneFlow's programs write ``sbp.broadcast`` and ``sbp.broadcast()``.
    fn __call__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    /// The dim that is split; None for broadcast and partial.
    #[getter]
    fn dim(&self) -> Option<usize> {
        match self.inner {
            oflow::sbp::Sbp::Split(d) => Some(d),
            _ => None,
        }
    }
    fn __repr__(&self) -> String {
        use oflow::sbp::Sbp as S;
        match self.inner {
            S::Split(d) => format!("oflow.sbp.split(dim={d})"),
            S::Broadcast => "oflow.sbp.broadcast".into(),
            S::Partial(ReduceOp::Max) => "oflow.sbp.partial_max".into(),
            S::Partial(ReduceOp::Min) => "oflow.sbp.partial_min".into(),
            S::Partial(_) => "oflow.sbp.partial_sum".into(),
        }
    }
    fn __str__(&self) -> String {
        self.inner.to_string()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Sbp>().is_ok_and(|s| s.get().inner == self.inner)
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.inner.hash(&mut h);
        h.finish()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Sbp>().into_any(), (self.inner.to_string(),)))
    }
}

/// A stream of random numbers of its own, as ``torch.Generator``.
#[pyclass(frozen, module = "oflow")]
pub struct Generator {
    inner: oflow::Generator,
}

impl Generator {
    /// The object of a generator.
    pub fn of(inner: oflow::Generator) -> Generator {
        Generator { inner }
    }
    /// The generator of the library.
    pub fn inner(&self) -> &oflow::Generator {
        &self.inner
    }
}

#[pymethods]
impl Generator {
    #[new]
    #[pyo3(signature = (seed=0))]
    fn new(seed: u64) -> Generator {
        Generator { inner: oflow::Generator::new(seed) }
    }
    /// Starts again with this seed.
    fn manual_seed(slf: Py<Self>, seed: u64) -> Py<Self> {
        slf.get().inner.manual_seed(seed);
        slf
    }
    /// The seed.
    fn initial_seed(&self) -> u64 {
        self.inner.seed()
    }
    /// Seed and number of draws, from which ``set_state`` goes on.
    fn get_state(&self) -> (u64, u64) {
        let s = self.inner.state();
        (s.seed, s.ordinal)
    }
    /// Goes on from a state.
    fn set_state(&self, py: Python<'_>, state: (u64, u64)) -> PyResult<()> {
        self.inner.set_state(GeneratorState { seed: state.0, ordinal: state.1 }).or_raise(py)
    }
    fn __repr__(&self) -> String {
        format!("oflow.{:?}", self.inner)
    }
}

/// How elements lie in memory, as PyTorch's programs name it. It has no effect: tensors of oflow are row-major, and no value depends on it.
#[pyclass(frozen, eq, hash, name = "memory_format", module = "oflow")]
#[derive(PartialEq, Eq, Hash)]
pub struct MemoryFormat(&'static str);

#[pymethods]
impl MemoryFormat {
    fn __repr__(&self) -> String {
        format!("oflow.{}", self.0)
    }
}

/// Refuses what is no memory format.
pub fn memory_format(format: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match format {
        Some(o) if !o.is_none() && !o.is_instance_of::<MemoryFormat>() => {
            Err(PyTypeError::new_err(format!("memory_format is {}; it is an oflow.memory_format", o.repr()?)))
        }
        _ => Ok(()),
    }
}

/// Adds the memory formats to the module.
pub fn add_memory_formats(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<MemoryFormat>()?;
    for name in ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided"] {
        m.add(name, Py::new(m.py(), MemoryFormat(name))?)?;
    }
    Ok(())
}
