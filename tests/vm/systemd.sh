# shellcheck shell=bash disable=SC2154
# A small Debian with systemd, on a disk: sourced by boot-test. Needs: cache, busybox, say, die, and kernels.sh, initramfs.sh.
#
# The packages are unpacked, not installed: no root is needed, and no script of theirs runs. From Debian 13 on every file of a package lies
# below /usr, which makes that enough.

systemd_suite=trixie
systemd_packages=(base-files base-passwd libc-bin systemd systemd-sysv udev dash bash coreutils grep sed kmod mount util-linux procps iproute2 libelf1t64 zlib1g)
# For the disk, before systemd runs.
disk_modules=(virtio_pci virtio_blk ext4)

# Fetches and unpacks it into $cache/systemd, unless it is there.
provide_systemd() {
  local dir=$cache/systemd new deb link
  if [ -e "$dir/etc/os-release" ]; then return; fi
  fetch_list "$systemd_suite"
  say "fetching systemd and what it needs (about 40 MB)"
  quietly "$systemd_suite" apt_private "$systemd_suite" apt-get install -y --download-only --no-install-recommends "${systemd_packages[@]}"
  rm -rf "$cache"/systemd.*
  new=$(mktemp -d "$cache/systemd.XXXXXX")
  chmod 755 "$new"
  mkdir -p "$new"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc,dev,proc,sys,run,tmp,root,var}
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$new/$link"; done
  for deb in "$cache/apt/$systemd_suite/cache/archives"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$new" --keep-directory-symlink --no-same-owner; done
  rm -rf "$new"/usr/share/{doc,man,locale,info,bash-completion,zsh} "$cache/apt/$systemd_suite"
  cp "$new/usr/share/base-passwd/passwd.master" "$new/etc/passwd"
  cp "$new/usr/share/base-passwd/group.master" "$new/etc/group"
  printf 'vm\n' >"$new/etc/hostname"
  printf '127.0.0.1 localhost vm\n' >"$new/etc/hosts"
  : >"$new/etc/machine-id"
  printf '/dev/vda / ext4 defaults 0 1\n' >"$new/etc/fstab"
  ln -sf /usr/lib/systemd/system/multi-user.target "$new/etc/systemd/system/default.target"
  mv "$new" "$dir"
}

# The first archive that the kernel unpacks: loads the disk's modules, mounts it, and gives way to systemd.
disk_initramfs() { # kernel, archive
  local release root modules=("${disk_modules[@]}")
  release=$(cat "$cache/kernels/$1/release")
  root=$(mktemp -d "$cache/base.XXXXXX")
  mkdir -p "$root"/{bin,sbin,proc,sys,dev,disk,lib/modules}
  cp "$busybox" "$root/bin/busybox"
  (
    load_modules=("${modules[@]}") offer_modules='^$'
    copy_modules "$cache/kernels/$1/usr/lib/modules/$release" "$root/lib/modules/$release"
  )
  depmod -b "$root" "$release"
  cat >"$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
for module in ${modules[*]}; do /bin/busybox modprobe \$module; done
/bin/busybox mount -t ext4 /dev/vda /disk
/bin/busybox umount /proc /sys
exec /bin/busybox switch_root /disk /usr/lib/systemd/systemd
INIT
  chmod 755 "$root/init"
  pack "$root" "$2"
  rm -rf "$root"
}
