import type { Pod } from '../../api/generated/core/v1.ts';

/** Source: pkg/apis/scheduling SystemCriticalPriority. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

export const isSystemCritical = (pod: Pod): boolean => (pod.spec?.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
