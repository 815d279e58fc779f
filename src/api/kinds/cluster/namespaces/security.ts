/**
 * Annotations of a namespace with its allocated UID and GID ranges and SELinux level. Source: openshift/api security/v1
 * consts.go.
 */

/** UID range in the form `START/SIZE`. */
export const UID_RANGE = 'openshift.io/sa.scc.uid-range';
/** GID ranges in the form `START/SIZE`, separated by commas. */
export const SUPPLEMENTAL_GROUPS = 'openshift.io/sa.scc.supplemental-groups';
export const MCS = 'openshift.io/sa.scc.mcs';
