# shellcheck shell=bash disable=SC2154
# The machine's file system: sourced by `run`. Needs: here, cache, busybox, say.
#
# It lies in memory only (an initramfs), in two archives one behind the other: the base of a kernel (busybox, modules, `init`),
# kept in the cache, and what one run adds (the command, binaries with their shared libraries, files).

# In every machine and loaded at its start: inside another namespace the kernel loads none by itself.
load_modules=(virtio_pci virtio_console virtio_rng tun veth ifb dummy sch_netem sch_fq sch_fq_codel sch_htb sch_tbf sch_ingress
  tcp_bbr inet_diag tcp_diag udp_diag)
# In every machine, loaded on demand: a pattern of paths.
offer_modules='^kernel/net/(sched/.*|ipv4/tcp_.*|.*_diag|netfilter/nf_conntrack)[.]ko'

# The paths of these modules and of all they need, out of depmod's modules.dep (which lists needs of needs too).
module_paths() { # modules.dep
  awk -v load="${load_modules[*]}" -v offer="$offer_modules" '
    BEGIN { n = split(load, names, " "); for (i = 1; i <= n; i++) wanted[names[i]] = 1 }
    {
      sub(/:/, "", $1)
      name = $1; sub(/.*\//, "", name); sub(/[.]ko.*/, "", name); gsub(/-/, "_", name)
      if (name in wanted || $1 ~ offer) for (i = 1; i <= NF; i++) print $i
    }' "$1" | sort -u
}

# Copies modules unpacked, since busybox has no xz.
copy_modules() { # from, to: two /lib/modules/RELEASE
  local path out
  mkdir -p "$2"
  cp "$1"/modules.{order,builtin,builtin.modinfo} "$2"
  module_paths "$1/modules.dep" | while read -r path; do
    out=$2/${path%.ko*}.ko
    mkdir -p "${out%/*}"
    case $path in
      *.xz) xz -dc "$1/$path" >"$out" ;;
      *.zst) zstd -qdc "$1/$path" >"$out" ;;
      *) cp "$1/$path" "$out" ;;
    esac
  done
}

pack() { # root, archive
  (cd "$1" && find . -mindepth 1 -printf '%P\0' | LC_ALL=C sort -z | cpio --null --create --format=newc --owner=+0:+0 --quiet) >"$2"
}

# Prints the path of the base archive of a kernel, and makes it where it is missing or made from something else.
base_archive() { # kernel
  local dir=$cache/kernels/$1 release key archive root applet
  release=$(cat "$dir/release")
  key=$({ echo "$release"; cat "$here/init" "$here/initramfs.sh" "$busybox"; } | sha256sum | cut -c1-16)
  archive=$dir/base-$key.cpio
  if [ ! -e "$archive" ]; then
    root=$(mktemp -d "$cache/base.XXXXXX")
    chmod 755 "$root"
    mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,proc,sys,dev,tmp,run,root,vm,etc,lib/modules}
    cp "$busybox" "$root/bin/busybox"
    "$busybox" --list-full | while read -r applet; do
      [ -e "$root/$applet" ] || ln -s /bin/busybox "$root/$applet"
    done
    # The kernel asks for this path where it loads a module by itself.
    ln -sf /bin/busybox "$root/sbin/modprobe"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    printf '127.0.0.1 localhost vm\n' >"$root/etc/hosts"
    install -m 755 "$here/init" "$root/init"
    printf '%s\n' "${load_modules[@]}" >"$root/vm/modules"
    copy_modules "$dir/usr/lib/modules/$release" "$root/lib/modules/$release"
    depmod -b "$root" "$release"
    pack "$root" "$archive.new"
    rm -rf "$root" "$dir"/base-*.cpio
    mv "$archive.new" "$archive"
  fi
  printf '%s\n' "$archive"
}

# Adds a file, and where it is a dynamic binary its shared libraries at the paths where its loader will look for them.
add_file() { # root, file, path in the machine
  local library
  mkdir -p "$1/$(dirname "$3")"
  cp -rL "$2" "$1/$3"
  [ -f "$2" ] && [ "$(head -c4 "$2" | od -An -tx1 | tr -d ' \n')" = 7f454c46 ] || return 0
  # Debugging symbols would only cost the machine memory.
  if command -v strip >/dev/null; then strip --strip-debug "$1/$3" 2>/dev/null || true; fi
  # A static program needs none, and grep then finds nothing.
  { ldd "$2" 2>/dev/null || true; } | { grep -oE '/[^ ]+' || true; } | while read -r library; do
    [ -e "$1/$library" ] && continue
    mkdir -p "$1/$(dirname "$library")"
    cp -L "$library" "$1/$library"
  done
}
