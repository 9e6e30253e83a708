//! The device of a model, as the host knows it.

use mistralrs::Device;

use crate::config::DeviceChoice;

/// Opens the device of a choice; none if the host is to choose.
///
/// # Errors
///
/// Why there is no such device. If this build has no code for it, the error names the feature.
pub(crate) fn open(choice: DeviceChoice) -> Result<Option<Device>, String> {
    let device = match choice {
        DeviceChoice::Auto => return Ok(None),
        DeviceChoice::Cpu => return Ok(Some(Device::Cpu)),
        DeviceChoice::Cuda(ordinal) => Device::new_cuda(ordinal),
        DeviceChoice::Metal(ordinal) => Device::new_metal(ordinal),
    };
    device.map(Some).map_err(|error| match missing_feature(choice) {
        None => error.to_string(),
        Some(problem) => format!("{problem} ({error})"),
    })
}

/// What to build if this build has no code for a device.
pub(crate) fn missing_feature(choice: DeviceChoice) -> Option<String> {
    let (feature, is_built) = match choice {
        DeviceChoice::Auto | DeviceChoice::Cpu => return None,
        DeviceChoice::Cuda(_) => ("cuda", cfg!(feature = "cuda")),
        DeviceChoice::Metal(_) => ("metal", cfg!(feature = "metal")),
    };
    let problem = format!("this build has no code for it: build with `--features {feature}`");
    (!is_built).then_some(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_built_in_names_its_feature() {
        assert!(open(DeviceChoice::Auto).unwrap().is_none());
        assert!(open(DeviceChoice::Cpu).unwrap().unwrap().is_cpu());
        for (choice, feature, is_built) in [
            (DeviceChoice::Cuda(0), "cuda", cfg!(feature = "cuda")),
            (DeviceChoice::Metal(0), "metal", cfg!(feature = "metal")),
        ] {
            let problem = missing_feature(choice);
            assert_eq!(problem.is_none(), is_built, "{problem:?}");
            if !is_built {
                let error = open(choice).unwrap_err();
                assert!(error.contains(&format!("`--features {feature}`")), "{error}");
            }
        }
    }
}
