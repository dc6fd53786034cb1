#!/busybox sh
# The first process of a computer in the lab: loads the modules, with the parameters that the kernel's command line has for
# them, mounts the files of the host, and goes on there. The kernel hands SDMAC_LAB_FOLDER over as a variable.
/busybox mount -t devtmpfs none /dev
/busybox mount -t proc none /proc
/busybox mount -t sysfs none /sys
words=$(/busybox cat /proc/cmdline)
for file in /modules/*; do
    name=${file##*/}
    name=${name#*-}
    name=${name%.ko}
    values=
    for word in $words; do
        case $word in
            "$name".*) values="$values ${word#"$name".}" ;;
        esac
    done
    /busybox insmod "$file" $values || echo "sdmac: $name does not load"
done
/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose host /host || echo "sdmac: no files of the host"
/busybox umount /sys /proc
SDMAC_LAB_SHARE=9p exec /busybox chroot /host "$SDMAC_LAB_FOLDER/init" lab-init
