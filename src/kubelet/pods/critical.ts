import type { Pod } from 'kubernetes-types/core/v1';

/** Source: pkg/apis/scheduling SystemCriticalPriority. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

export const isSystemCritical = (pod: Pod): boolean => (pod.spec?.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
