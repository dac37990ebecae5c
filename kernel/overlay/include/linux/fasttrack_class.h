/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FastTrack classes and where they travel.
 *
 * Shared by the core (mm/fasttrack/), the I/O dispatcher
 * (block/fasttrack-iosched.c) and storage devices that read the class from
 * the CONTROL byte of a SCSI CDB (drivers/scsi/mflash/).
 */
#ifndef _LINUX_FASTTRACK_CLASS_H
#define _LINUX_FASTTRACK_CLASS_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum fasttrack_class - who an I/O or a task belongs to
 * @FASTTRACK_NEUTRAL: system services, kernel threads: never held back, never
 *	boosted by themselves. Also "not known".
 * @FASTTRACK_BACKGROUND: an app that is not in front
 * @FASTTRACK_FOREGROUND: an app in front, or a task working for one
 * @FASTTRACK_NR_CLASSES: number of classes
 */
enum fasttrack_class {
	FASTTRACK_NEUTRAL	= 0,
	FASTTRACK_BACKGROUND	= 1,
	FASTTRACK_FOREGROUND	= 2,
	FASTTRACK_NR_CLASSES,
};

/*
 * SAM-5 leaves bits 7:6 of the CONTROL byte, the last byte of a fixed-length
 * CDB, to the vendor. They hold the class.
 */
#define FASTTRACK_CONTROL_SHIFT	6
#define FASTTRACK_CONTROL_MASK	GENMASK(7, 6)

static inline enum fasttrack_class fasttrack_control_class(u8 control)
{
	u8 class = (control & FASTTRACK_CONTROL_MASK) >> FASTTRACK_CONTROL_SHIFT;

	return class < FASTTRACK_NR_CLASSES ? class : FASTTRACK_NEUTRAL;
}

static inline u8 fasttrack_class_control(enum fasttrack_class class)
{
	return (u8)class << FASTTRACK_CONTROL_SHIFT;
}

#endif /* _LINUX_FASTTRACK_CLASS_H */
