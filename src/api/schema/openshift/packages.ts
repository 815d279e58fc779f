/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { oauthPackage } from './oauth.ts';
import { projectPackage } from './project.ts';
import { routePackage } from './route.ts';
import { userPackage } from './user.ts';

const packages = [oauthPackage, projectPackage, routePackage, userPackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
