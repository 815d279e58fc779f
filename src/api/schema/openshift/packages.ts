/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { authorizationPackage } from './authorization.ts';
import { projectPackage } from './project.ts';
import { routePackage } from './route.ts';

const packages = [authorizationPackage, projectPackage, routePackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
