/** What pods of a namespace run as, allocated to it. Source: openshift/api security/v1 consts.go. */

/** Users, `START/SIZE`. */
export const UID_RANGE = 'openshift.io/sa.scc.uid-range';
/** Groups, as UID_RANGE; more ranges follow after commas. */
export const SUPPLEMENTAL_GROUPS = 'openshift.io/sa.scc.supplemental-groups';
/** SELinux level. */
export const MCS = 'openshift.io/sa.scc.mcs';
