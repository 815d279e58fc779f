/** etcd's alarm types. Source: etcdserverpb.AlarmType. */
export const ALARM_NO_SPACE = 1;
export const ALARM_CORRUPT = 2;
