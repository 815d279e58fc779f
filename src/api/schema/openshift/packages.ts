/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { authorizationPackage } from './authorization.ts';
import { configPackage } from './config.ts';
import { projectPackage } from './project.ts';
import { quotaPackage } from './quota.ts';
import { routePackage } from './route.ts';
import { securityPackage } from './security.ts';

const packages = [authorizationPackage, configPackage, projectPackage, quotaPackage, routePackage, securityPackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
