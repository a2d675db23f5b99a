# shellcheck shell=bash disable=SC2154
# A small Debian with systemd, on a disk: sourced by boot-test and apply-test. Needs: here, cache, busybox, say, die, and kernels.sh,
# initramfs.sh.
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

# Makes $dir/disk and $dir/initramfs: the small Debian with a kernel's modules, `linerate`, and a script that each boot runs as a service once
# everything else is up. Other modules than the usual ones: in load_modules.
make_disk() { # kernel, script
  local lock release unit as_root=()
  exec {lock}>"$cache/lock"
  flock "$lock"
  provide_kernel "$1"
  provide_systemd
  dir=$(mktemp -d "$cache/boot.XXXXXX")
  cp -a "$cache/systemd" "$dir/root"
  disk_initramfs "$1" "$dir/initramfs"
  flock -u "$lock"
  release=$(cat "$cache/kernels/$1/release")
  copy_modules "$cache/kernels/$1/usr/lib/modules/$release" "$dir/root/usr/lib/modules/$release"
  depmod -b "$dir/root" "$release"
  add_file "$dir/root" "${CARGO_TARGET_DIR:-target}/debug/linerate" usr/local/bin/linerate
  add_file "$dir/root" "$2" usr/local/bin/guest
  unit=$dir/root/etc/systemd/system/guest.service
  printf '[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/usr/local/bin/guest\n' >"$unit"
  mkdir -p "$dir/root/etc/systemd/system/multi-user.target.wants"
  ln -s /etc/systemd/system/guest.service "$dir/root/etc/systemd/system/multi-user.target.wants/"
  # Files belong to root in there, whoever builds the disk.
  [ "$(id -u)" = 0 ] || as_root=(unshare --map-root-user)
  chmod -R go-w "$dir/root/usr/local"
  truncate -s 900M "$dir/disk"
  "${as_root[@]}" mke2fs -q -t ext4 -d "$dir/root" "$dir/disk"
  rm -rf "$dir/root"
}

# Boots the disk so many times, and prints what the script reports. Fails where a boot does not report `stage N passed`.
boot_disk() { # kernel, boots, processors, command in front of qemu and its options behind, parted by --
  local kernel=$1 boots=$2 processors=$3 boot started front=()
  shift 3
  while [ "$1" != -- ]; do front+=("$1") && shift; done
  shift
  for boot in $(seq "$boots"); do
    : >"$dir/report"
    started=$EPOCHREALTIME
    timeout --signal KILL "$seconds_per_boot" setpriv --pdeathsig KILL -- "${front[@]}" qemu-system-x86_64 \
      -accel tcg,thread=single -cpu Nehalem -smp "$processors" -m 1024 -no-user-config -nodefaults -display none -no-reboot \
      -kernel "$(kernel_image "$kernel")" -initrd "$dir/initramfs" \
      -append "console=ttyS0 loglevel=4 panic=-1 oops=panic no_timer_check tsc=reliable mitigations=off net.ifnames=0 systemd.show_status=no" \
      -chardev file,id=console,path="$dir/console" -serial chardev:console \
      -chardev file,id=report,path="$dir/report" -serial chardev:report \
      -drive file="$dir/disk",format=raw,if=none,id=disk,cache=unsafe -device virtio-blk-pci,drive=disk -device virtio-rng-pci \
      "$@" </dev/null >"$dir/qemu" 2>&1 &
    qemu=$!
    wait "$qemu" || true
    qemu=''
    printf '== boot %s (%.0f s, linux %s)\n' "$boot" "$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')" \
      "$(cat "$cache/kernels/$kernel/release")"
    tr -d '\r' <"$dir/report"
    if ! tr -d '\r' <"$dir/report" | grep -q "^stage $boot passed"; then
      say "boot $boot did not pass; the end of its console:"
      { tail -n 40 "$dir/console"; cat "$dir/qemu"; } | tr -d '\r' >&2
      return 1
    fi
  done
}
