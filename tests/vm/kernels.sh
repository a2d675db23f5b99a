# shellcheck shell=bash disable=SC2154
# Stock Debian cloud kernels by name, in a cache directory: sourced by `run`. Needs: cache (folder), say, die (functions).
#
# apt does the fetching and the checking of signatures, with lists, package cache and sources of its own, so that nothing of
# the machine's own apt changes and no root is needed. The mirror and the transport settings are the machine's.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The Debian suite that carries a kernel.
suite_of() { # kernel
  case $1 in
    6.1) echo bookworm ;;
    6.12) echo trixie ;;
    newest) echo sid ;;
    *) return 1 ;;
  esac
}

# The address this machine fetches Debian's packages from: its first apt source that has a release of Debian itself.
debian_mirror() {
  if [ -n "${LINERATE_VM_MIRROR:-}" ]; then
    printf '%s\n' "$LINERATE_VM_MIRROR"
    return
  fi
  # shellcheck disable=SC2016 # apt-get's own placeholders
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 ~ /^(bullseye|bookworm|trixie|forky|sid|(old)*stable|testing|unstable)$/ { print $1; exit }'
}

apt_private() { # suite, apt command and its arguments
  local dir=$cache/apt/$1 tool=$2
  shift 2
  "$tool" -q -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts="$dir/none" \
    -o Dir::State::lists="$dir/lists" -o Dir::State::status="$dir/status" -o Dir::State::extended_states="$dir/extended" \
    -o Dir::Cache="$dir/cache" -o APT::Sandbox::User="$(id -un)" -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
    -o Acquire::Languages=none "$@"
}

quietly() { # suite, command: its output only where it fails
  local log=$cache/apt/$1/log
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 8 "$log" >&2
    die "failed: ${*:2:2}"
  fi
}

# The packages of one version that a kernel's image comes in: one up to 6.12, several from Debian's 7.x on.
kernel_packages() { # suite, package
  apt_private "$1" apt-cache depends --important "$2" |
    sed -nE 's/^ *(Pre)?Depends: (linux-(base|image|binary|modules)(-[0-9].*)?-cloud-amd64)$/\2/p' |
    while read -r package; do
      # linux-base-cloud-… only names the newest version.
      case $package in linux-base-cloud-*) ;; *) echo "$package" ;; esac
      kernel_packages "$1" "$package"
    done | sort -u
}

# Fetches the package list of a suite, for apt_private.
fetch_list() { # suite
  local suite=$1 mirror
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "none of this machine's apt sources is Debian's: name a mirror in LINERATE_VM_MIRROR"
  mkdir -p "$cache/apt/$suite"/{none,lists/partial,cache/archives/partial}
  : >"$cache/apt/$suite/status"
  printf 'deb [signed-by=%s target=Packages] %s %s main\n' "$keyring" "$mirror" "$suite" >"$cache/apt/$suite/sources.list"
  say "fetching the package list of Debian's $suite (about 10 MB)"
  quietly "$suite" apt_private "$suite" apt-get update --error-on=any
}

# Fetches and unpacks a kernel into $cache/kernels/NAME, unless it is there. Prints nothing.
provide_kernel() { # kernel
  local name=$1 suite dir new packages
  suite=$(suite_of "$name")
  dir=$cache/kernels/$name
  if [ -e "$dir/release" ]; then return; fi

  mkdir -p "$cache/kernels"
  fetch_list "$suite"
  packages=$(kernel_packages "$suite" linux-image-cloud-amd64)
  [ -n "$packages" ] || die "Debian's $suite has no linux-image-cloud-amd64"
  say "fetching ${packages//$'\n'/ } (about 30 MB)"
  rm -rf "$cache"/kernels/new.*
  new=$(mktemp -d "$cache/kernels/new.XXXXXX")
  mkdir "$new/debs"
  # shellcheck disable=SC2086 # one word per package
  (cd "$new/debs" && quietly "$suite" apt_private "$suite" apt-get download $packages)
  for deb in "$new"/debs/*.deb; do dpkg-deb -x "$deb" "$new"; done
  # Debian 12 has its modules in /lib, later ones in /usr/lib: one place here.
  if [ ! -d "$new/usr/lib/modules" ]; then
    mkdir -p "$new/usr/lib"
    mv "$new/lib/modules" "$new/usr/lib/"
  fi
  (cd "$new/usr/lib/modules" && echo *-cloud-amd64) >"$new/release"
  depmod -b "$new/usr" "$(cat "$new/release")"
  rm -rf "$dir" "$new/debs" "${new:?}/usr/share" "${new:?}/lib" "$cache/apt/$suite"
  chmod 755 "$new"
  mv "$new" "$dir"
}

kernel_image() { # kernel
  local dir=$cache/kernels/$1 release image
  release=$(cat "$dir/release")
  for image in "$dir/boot/vmlinuz-$release" "$dir/usr/lib/modules/$release/vmlinuz"; do
    if [ -e "$image" ]; then
      printf '%s\n' "$image"
      return
    fi
  done
  die "the packages of $release hold no kernel"
}
