/** Kinds of OpenShift's groups, served under both profiles. */
import { routes } from '../kinds/routes/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [routes];
