/** Types of scalar fields in API objects. */

/** Fixed-point number with a suffix, for example `500m` or `2Gi`. */
export type Quantity = string;
export type IntOrString = number | string;
/** RFC 3339 with seconds, in UTC. */
export type Time = string;
/** RFC 3339 with microseconds, in UTC. */
export type MicroTime = string;
