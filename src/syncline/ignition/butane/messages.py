"""The sentences of Butane's reports, as upstream words them: people search for them, and tools compare them."""

from __future__ import annotations

NO_VARIANT = "error parsing variant; must be specified"
INVALID_VERSION = "error parsing version; must be a valid semver"
INVALID_SOURCE = "source config is invalid"
INVALID_GENERATED = "config generated was invalid"
RHCOS_VARIANT = (
    "rhcos variant has been removed; use openshift variant instead: "
    "https://coreos.github.io/butane/upgrading-openshift/"
)

# resources and trees
TOO_MANY_SOURCES = "only one of the following can be set: inline, local, source"
FILES_DIR_ESCAPE = "local file path traverses outside the files directory"
FILE_TYPE = "trees may only contain files, directories, and symlinks"
NODE_EXISTS = "matching filesystem node has existing contents or different type"
NO_FILES_DIR = "local file paths are relative to a files directory that must be specified with -d/--files-dir"
TREE_NOT_DIRECTORY = "root of tree must be a directory"
TREE_NO_LOCAL = "local is required"
DECIMAL_MODE = "unreasonable mode would be reasonable if specified in octal; remember to add a leading zero"
UNKNOWN_IGNITION_VERSION = "skipping validation for the merge/replace ignition config due to an unkown version"

# systemd
TOO_MANY_SYSTEMD_SOURCES = "only one of the following can be set: contents, contents_local"
QUADLET_EXTENSION = (
    "unsupported file extension for quadlet: must be one of "
    ".container, .volume, .network, .kube, .image, .build, .pod, or .artifact"
)
TEMPLATE_INSTANCE_CONTENTS = "template instances cannot have contents or contents_local"

# mount units
MOUNT_NO_PATH = "path is required if with_mount_unit is true and format is not swap"
MOUNT_NO_FORMAT = "format is required if with_mount_unit is true"
MOUNT_POINT_FORBIDDEN = "path must be under /etc or /var if with_mount_unit is true"

# boot device
LAYOUT = "layout must be one of: aarch64, ppc64le, s390x-eckd, s390x-virt, s390x-zfcp, x86_64"
LAYOUT_LEGACY = "layout must be one of: aarch64, ppc64le, x86_64"
TOO_FEW_MIRROR_DEVICES = "mirroring requires at least two devices"
MIRROR_REQUIRES_LAYOUT = "boot_device.layout should be specified when boot_device.mirror is specified"
NO_LUKS_DEVICE = "device is required for layouts: s390x-eckd, s390x-zfcp"
MIRROR_NOT_SUPPORTED = "mirroring not supported on layouts: s390x-eckd, s390x-zfcp, s390x-virt"
LUKS_DEVICE_NAME = "device name must start with /dev/dasd on s390x-eckd layout or /dev/sd on s390x-zfcp layout"
CEX_ARCHITECTURE = "when using cex the targeted architecture must match s390x"
CEX_NOT_SUPPORTED = "cex is not currently supported on the target platform"
CEX_WITH_CLEVIS = "cannot use cex with clevis"
NO_LUKS_METHOD = "no method specified for luks"

# partitions
REUSE_BY_LABEL = (
    "partitions cannot be reused by label; number must be specified except on boot disk "
    "(/dev/disk/by-id/coreos-boot-disk) or when wipe_table is true"
)
WRONG_PARTITION_NUMBER = "incorrect partition number; a new partition will be created using reserved label"
ROOT_TOO_SMALL = "root should have 8GiB of space assigned"
ROOT_CONSTRAINED = (
    "root partition cannot expand; it is set to fill available space but is followed by an auto-positioned partition"
)

# machine configs
FIELD_ELIDED = "field ignored in raw mode"
NAME_REQUIRED = "metadata.name is required"
ROLE_REQUIRED = "machineconfiguration.openshift.io/role label is required"
KERNEL_TYPE = 'must be empty, "default", or "realtime"'
BTRFS_SUPPORT = "btrfs is not supported in this spec version"
FILESYSTEM_NONE_SUPPORT = 'format "none" is not supported in this spec version'
FILE_SCHEME_SUPPORT = "file contents source must be data URL in this spec version"
FILE_APPEND_SUPPORT = "appending to files is not supported in this spec version"
FILE_COMPRESSION_SUPPORT = "file compression is not supported in this spec version"
FILE_HEADER_SUPPORT = "file HTTP headers are not supported in this spec version"
FILE_SPECIAL_MODE_SUPPORT = "special mode bits are not supported in this spec version"
GROUP_SUPPORT = "groups are not supported in this spec version"
USER_FIELD_SUPPORT = (
    'fields other than "name", "ssh_authorized_keys", and "password_hash" (4.13.0+) '
    "are not supported in this spec version"
)
USER_NAME_SUPPORT = 'users other than "core" are not supported in this spec version'
KERNEL_ARGUMENT_SUPPORT = (
    "this section cannot be used for kernel arguments in this spec version; use openshift.kernel_arguments instead"
)
MISSING_CEX_ARGUMENT = (
    "'rd.luks.key=/etc/luks/cex.key' must be set as kernel argument when CEX is enabled for the boot device"
)

# variants
CLEVIS_SUPPORT = "clevis is not supported in this spec version"
DIRECTORY_SUPPORT = "directories are not supported in this spec version"
DISK_SUPPORT = "disk customization is not supported in this spec version"
FILESYSTEM_SUPPORT = "filesystem customization is not supported in this spec version"
LINK_SUPPORT = "links are not supported in this spec version"
LUKS_SUPPORT = "luks is not supported in this spec version"
RAID_SUPPORT = "raid is not supported in this spec version"
GENERAL_KERNEL_ARGUMENT_SUPPORT = "kernel argument customization is not supported in this spec version"

# grub
GRUB_NO_NAME = 'field "name" is required'
GRUB_NO_PASSWORD = 'field "password_hash" is required'
