/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { projectPackage } from './project.ts';
import { routePackage } from './route.ts';
import { securityPackage } from './security.ts';

const packages = [projectPackage, routePackage, securityPackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
