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
 * @FASTTRACK_NR_CLASSES: number of classes of I/O
 * @FASTTRACK_PERCEPTIBLE: an app that is heard or felt though it is not in front:
 *	never held back, never boosted
 * @FASTTRACK_NR_APP_CLASSES: number of classes of apps and tasks
 *
 * Bios, requests and commands have room for three classes: two of the flags of
 * a bio, two bits of a command. Perceptible I/O travels as neutral, see
 * fasttrack_io_class(); what is not of the core (mm/fasttrack/) sees no other.
 */
enum fasttrack_class {
	FASTTRACK_NEUTRAL	= 0,
	FASTTRACK_BACKGROUND	= 1,
	FASTTRACK_FOREGROUND	= 2,
	FASTTRACK_NR_CLASSES,
	FASTTRACK_PERCEPTIBLE	= FASTTRACK_NR_CLASSES,
	FASTTRACK_NR_APP_CLASSES,
};

/* The class that the I/O of a task or of an app travels with. */
static inline enum fasttrack_class fasttrack_io_class(enum fasttrack_class class)
{
	return class == FASTTRACK_PERCEPTIBLE ? FASTTRACK_NEUTRAL : class;
}

/*
 * SAM-5 leaves bits 7:6 of the CONTROL byte, the last byte of a fixed-length
 * CDB, to the vendor. They hold the class; the fourth value is foreground, too,
 * and says that the foreground waits for what others have sent.
 */
#define FASTTRACK_CONTROL_SHIFT		6
#define FASTTRACK_CONTROL_MASK		GENMASK(7, 6)
#define FASTTRACK_CONTROL_DEPENDS	3

static inline u8 fasttrack_control_value(u8 control)
{
	return (control & FASTTRACK_CONTROL_MASK) >> FASTTRACK_CONTROL_SHIFT;
}

/* Does the foreground wait for what others have sent? */
static inline bool fasttrack_control_depends(u8 control)
{
	return fasttrack_control_value(control) == FASTTRACK_CONTROL_DEPENDS;
}

static inline enum fasttrack_class fasttrack_control_class(u8 control)
{
	return fasttrack_control_depends(control) ? FASTTRACK_FOREGROUND :
	       (enum fasttrack_class)fasttrack_control_value(control);
}

/* @depends is of the foreground's only. */
static inline u8 fasttrack_class_control(enum fasttrack_class class, bool depends)
{
	u8 value = class == FASTTRACK_FOREGROUND && depends ?
		   FASTTRACK_CONTROL_DEPENDS : fasttrack_io_class(class);

	return value << FASTTRACK_CONTROL_SHIFT;
}

#endif /* _LINUX_FASTTRACK_CLASS_H */
