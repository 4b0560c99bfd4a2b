local health_status = {}
health_status.status = "Progressing"
health_status.message = ""
if obj.status ~= nil then
  if obj.status.health ~= nil then
    -- we consider the Application Healthy only when the health status is Healthy AND it's synced
    if obj.status.health.status == "Healthy" and (obj.status.sync and obj.status.sync.status or nil) == "Synced" then
      health_status.status = "Healthy"
      health_status.message = (obj.status.health.message or "Application is healthy and synced")
      return health_status
    end
	-- We consider the Application Degraded only when the Sync failed for 'retry.limit' times
    if obj.status.operationState ~= nil then
      local retryLimit = (obj.status.operationState.operation and obj.status.operationState.operation.retry and obj.status.operationState.operation.retry.limit or nil)
      local retryCount = (obj.status.operationState.retryCount or nil)
      if retryLimit == retryCount and obj.status.operationState.phase ~= "Succeeded" then
        health_status.status = "Degraded"
        health_status.message = "Retry limit reached and sync didn't succeed"
      end
    end
  end
end
return health_status
