/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { authorizationPackage } from './authorization.ts';
import { configPackage } from './config.ts';
import { oauthPackage } from './oauth.ts';
import { projectPackage } from './project.ts';
import { quotaPackage } from './quota.ts';
import { routePackage } from './route.ts';
import { securityPackage } from './security.ts';
import { userPackage } from './user.ts';

const packages = [
  authorizationPackage,
  configPackage,
  oauthPackage,
  projectPackage,
  quotaPackage,
  routePackage,
  securityPackage,
  userPackage,
];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
