/** The API's own types, under short names. They are generated from api/openapi.json: `npm run gen`. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Agent = Schemas['Agent'];
export type AgentProcess = Schemas['AgentProcess'];
export type CompileAnalysis = Schemas['CompileAnalysis'];
export type CompileReport = Schemas['CompileReport'];
export type Delivery = Schemas['Delivery'];
export type Diagnostic = Schemas['Diagnostic'];
export type DryRun = Schemas['DryRun'];
export type DryRunReport = Schemas['DryRunReport'];
export type EnvironmentDetails = Schemas['EnvironmentDetails'];
export type EnvironmentSettings = Schemas['EnvironmentSettings'];
export type Explanation = Schemas['Explanation'];
export type Fact = Schemas['Fact'];
export type IssuedToken = Schemas['IssuedToken'];
export type Journey = Schemas['Journey'];
export type Notification = Schemas['Notification'];
export type Parameter = Schemas['Parameter'];
export type Project = Schemas['Project'];
export type Repository = Schemas['Repository'];
export type Resource = Schemas['Resource'];
export type ResourceAction = Schemas['ResourceAction'];
export type ResourceDiff = Schemas['ResourceDiff'];
export type ResourceHistory = Schemas['ResourceHistory'];
export type ResourceLog = Schemas['ResourceLog'];
export type ResourceView = Schemas['ResourceView'];
export type Revision = Schemas['Revision'];
export type ServerStatus = Schemas['ServerStatus'];
export type VersionDetails = Schemas['VersionDetails'];
