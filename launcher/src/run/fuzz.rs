//! For `cargo xtask fuzz`: lines of cases, read up to the point where ranks would be started.

use super::bind::{Functions, arguments};
use super::json::Json;
use super::line::{Case, id_of};

/// Reads a line. What is read of an `id` can be written and is read as the same.
///
/// # Errors
/// When it is not.
pub fn line(functions: &Functions, input: &[u8]) -> Result<bool, String> {
    let Ok(line) = Json::parse(input) else { return Ok(false) };
    if let Some(id) = id_of(&line) {
        let text = serde_json::to_vec(id).map_err(|e| e.to_string())?;
        let again = Json::parse(&text).map_err(|e| format!("the id is written as no JSON: {e}"))?;
        let same = serde_json::to_vec(&again).map_err(|e| e.to_string())? == text;
        if !same {
            return Err(format!("the id {} changes when it is read again", id.what()));
        }
    }
    let Ok(case) = Case::read(line) else { return Ok(false) };
    Ok(arguments(&case, functions).is_ok())
}

/// Lines that are valid, with every kind of argument.
pub fn recorded() -> Vec<Vec<u8>> {
    let x = r#"{"shape":[2,3],"dtype":"f32","data":[1,2.5,"nan","-inf",-0.0,6],"sbp":["P"]}"#;
    [
        format!(r#"{{"call":"gather","args":{{"x":{x},"dim":0,"index":{{"data":[[0,1,0]]}}}},"mesh":[2],"grad":true,"seed":1,"id":[1,"nan"]}}"#),
        format!(r#"{{"call":"cat","args":{{"xs":[{x},{x}],"dim":1}},"mesh":"dp=2","addends":"large"}}"#),
        format!(r#"{{"call":"add","args":[{x},0.5],"mesh":{{"mesh":[2],"ranks":[1,0]}}}}"#),
        r#"{"call":"full","args":{"shape":[4],"value":2,"target":{"mesh":[2,2],"sbp":["S(0)","B"]},"dtype":"bf16"}}"#.to_string(),
        r#"{"call":"sum","args":{"x":{"data":[[1],[2]],"dtype":"f16","sbp":"[P(max), S(0)]"},"dims":[0]},"mesh":[2,2],"grad":["x"]}"#.to_string(),
        r#"{"call":"to_global","args":{"x":{"data":[9007199254740993],"dtype":"i64"},"placement":[2],"sbp":["B"]},"mesh":[2]}"#.to_string(),
    ]
    .map(String::into_bytes)
    .into()
}
