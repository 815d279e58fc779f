/** Kinds of OpenShift's groups, served under both profiles. */
import { oauthKinds } from '../kinds/oauth/index.ts';
import { routes } from '../kinds/routes/index.ts';
import { userKinds } from '../kinds/users/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [routes, ...userKinds, ...oauthKinds];
