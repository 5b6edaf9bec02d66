#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# sh -s KEYS: makes of a bare Debian machine what Google's image of Debian is. KEYS is what the instance's metadata has as ssh-keys.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get --quiet=2 update
apt-get --quiet=2 --no-install-recommends install openssh-server sudo
printf '%s %s\n' "$(hostname -I)" "$(hostname)" >>/etc/hosts
printf '%s\n' "$1" | while IFS=: read -r user key; do
    useradd --create-home --shell /bin/sh "$user"
    install -d -m 700 -o "$user" -g "$user" "/home/$user/.ssh"
    printf '%s\n' "$key" >"/home/$user/.ssh/authorized_keys"
    printf '%s ALL=(ALL:ALL) NOPASSWD:ALL\n' "$user" >"/etc/sudoers.d/$user"
done
systemctl --quiet is-active ssh
